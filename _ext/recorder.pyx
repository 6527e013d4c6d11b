# What is C here: what is the same for every recorded call: its number and names, the outlines of its arguments and
# results, its lines and its stack, and the hooks of its gradients. In stack mode there is little else. What is Python:
# which calls these are, how anything but a plain tensor is looked at, and where it is all written
# (dumpsim.frontends.apidump).
#
# The caller guarantees: arguments and results are given where torch asks no override, so that attributes of tensors are
# what they are. Nothing of torch is imported; its types and functions are given. What belongs together is put down
# without running Python in between, so that threads need no lock for it.
"""What an API dump keeps of the calls that it records."""

cimport cython

from dumpsim._ext.frames cimport Frames


cdef Py_ssize_t SWEEP = 4096  # hooks of gradients that are kept before those of finished graphs are let go


cdef inline bint is_number_or_none(leaf):
    return leaf is None or type(leaf) is int or type(leaf) is float or type(leaf) is bool


cdef class Lines:
    """Info lines that wait to be spelt: names, and what follows them.

    Two lists of text give Python's collector nothing to walk.

    Parameters
    ----------
    limit : int
        So many are worth writing.
    write : callable
        Asked, without arguments, when there are as many.

    Attributes
    ----------
    total : int
        Lines given so far.
    """

    cdef list names, tails
    cdef readonly Py_ssize_t total
    cdef Py_ssize_t limit
    cdef object write

    def __init__(self, Py_ssize_t limit, write):
        self.names = []
        self.tails = []
        self.limit = limit
        self.write = write

    def __len__(self):
        return len(self.names)

    def add(self, str name, str tail):
        """One line."""
        self.one(name, tail)

    cdef int one(self, str name, str tail) except -1:
        with cython.critical_section(self):
            self.names.append(name)
            self.tails.append(tail)
            self.total += 1
        return self.check()

    cdef int extend(self, list first, list second) except -1:
        """The lines of two lists of (name, (tail, ...), ...), together."""
        with cython.critical_section(self):
            for found in first:
                self.names.append((<tuple> found)[0])
                self.tails.append((<tuple> (<tuple> found)[1])[0])
            for found in second:
                self.names.append((<tuple> found)[0])
                self.tails.append((<tuple> (<tuple> found)[1])[0])
            self.total += len(first) + len(second)
        return self.check()

    cdef inline int check(self) except -1:
        if len(self.names) >= self.limit:
            self.write()
        return 0

    def take(self):
        """The names and the tails that wait, which do so no more."""
        with cython.critical_section(self):
            names, tails = self.names, self.tails
            self.names, self.tails = [], []
        return names, tails


cdef class Outlines:
    """What an API dump says of tensors without looking at their values: type and shape, each distinct outline once.

    Parameters
    ----------
    plain : frozenset of type
        Types of tensors that are nothing but tensors.
    strided : layout
        The layout of tensors that have bytes of their own.
    wrapped : callable
        Whether a tensor only stands for another.
    spell : callable
        Of a type and a shape: whether they are data, and their outline; None if it takes more to tell.
    """

    cdef frozenset plain
    cdef object strided, wrapped, spell
    cdef dict known

    def __init__(self, frozenset plain, strided, wrapped, spell):
        self.plain = plain
        self.strided = strided
        self.wrapped = wrapped
        self.spell = spell
        self.known = {}

    cdef list take(self, str name, value, bint filtered, otherwise):
        """[(name, outline, tensor)] of `value`, or of each of its members with its position.

        `filtered` drops tensors that are no data and numbers; `otherwise(found, name, leaf)` sees to everything else.
        """
        cdef list found = []
        cdef Py_ssize_t position = 0
        if type(value) is tuple or type(value) is list:
            for leaf in value:
                if type(leaf) in self.plain:
                    self.one(found, f"{name}.{position}", leaf, filtered, otherwise)
                elif not (filtered and is_number_or_none(leaf)):
                    otherwise(found, f"{name}.{position}", leaf)
                position += 1
        elif type(value) in self.plain:
            self.one(found, name, value, filtered, otherwise)
        else:
            otherwise(found, name, value)
        return found

    cdef int one(self, list found, str name, tensor, bint filtered, otherwise) except -1:
        if (
            tensor.layout is not self.strided
            or tensor.is_nested
            or tensor.is_meta
            or self.wrapped(tensor)
        ):
            otherwise(found, name, tensor)
            return 0
        key = (tensor.dtype, tensor.shape)
        known = self.known.get(key)
        if known is None:
            if len(self.known) > 4096:
                self.known.clear()
            known = self.known[key] = self.spell(key[0], key[1])
        data, outline = <tuple> known
        if data or not filtered:
            if outline is None:
                otherwise(found, name, tensor)
            else:
                found.append((name, outline, tensor))
        return 0


cdef class Recorder:
    """Takes the calls of a network; a session is one, and does in Python what is not here.

    Parameters
    ----------
    lines : Lines
    stacks : Frames
    exact, retain_backward : bool
        See the sessions.

    Attributes
    ----------
    recording : bool
        From start to stop.
    begun : bool
        Whether anything has been recorded.
    request : Request
        What was asked for at start.
    npy : bool
        Whether that was arrays.
    selection : Selection
        Which calls those are.
    """

    cdef readonly Lines lines
    cdef readonly Frames stacks
    cdef readonly bint exact, retain_backward
    cdef public bint recording, begun
    cdef readonly object request
    cdef public object selection
    cdef readonly bint npy
    cdef bint outlined, filtered, short_stacks, all
    cdef dict counts

    def __init__(self, Lines lines, Frames stacks, *, bint exact, bint retain_backward):
        self.lines = lines
        self.stacks = stacks
        self.exact = exact
        self.retain_backward = retain_backward
        self.counts = {}

    def ask(self, request):
        """What is asked for from here on."""
        self.request = request
        self.outlined = request.dump_type == "stack"
        self.npy = request.npy
        self.filtered = request.filter_data
        self.short_stacks = request.filter_stack
        self.all = request.mode == "all"

    def begin(self):
        """Something is to be recorded for the first time."""
        raise NotImplementedError

    def count(self, str label):
        """The number of this call of an API."""
        return self.number(label)

    cdef Py_ssize_t number(self, str label) except -1:
        cdef Py_ssize_t number
        with cython.critical_section(self):
            number = self.counts.get(label, 0)
            self.counts[label] = number + 1
        return number

    cdef bint takes(self, str name) except -1:
        return self.all or self.selection.takes(name)


cdef class TensorRecorder(Recorder):
    """Takes the calls of a framework whose tensors tell their gradients to hooks.

    Attributes
    ----------
    outlines : Outlines
    grad_enabled : callable
        Whether the framework records gradients now.
    hooked : list
        References to the hooks of tensors, which go with their graph.
    """

    cdef public Outlines outlines
    cdef public object grad_enabled
    cdef readonly list hooked
    cdef Py_ssize_t sweep_at

    def __cinit__(self):
        self.hooked = []
        self.sweep_at = SWEEP

    def captured(self, str name, value, bint single):
        """What will be recorded of arguments or results, as they are now; `name` is the record's without positions."""
        return self.capture(name, value, single)

    def call(self, Gate gate, api, function, tuple args, dict kwargs, frame, tuple given, dict named):
        """Make a call of an API and record it; `given` and `named` are its arguments as `frame`, the caller, has them.

        Raises
        ------
        Exception
            Of the function itself, and no other.
        """
        cdef str base = api.base
        cdef Py_ssize_t number = self.number(base)
        cdef str name = f"{base}_{number}"
        cdef bint wanted = self.recording and self.takes(name)
        cdef list inputs = None
        if wanted and not self.exact:  # before the call: it may write into its inputs
            try:
                inputs = self.capture(f"{name}_forward_input", given, False)
            except Exception as error:  # a container that cannot be walked must not stop the user's program
                inputs = []
                self.skip(f"arguments: {type(error).__name__}")
        if self.retain_backward and not (self.exact or self.grad_enabled()):
            self.note(frame, base, name if wanted else None)
        gate.depth = 1
        try:
            result = function(*args, **kwargs)
        finally:
            gate.depth = 0
        if wanted and self.recording:
            try:
                stack = self.stacks.places(frame, self.short_stacks)
                self.finish(api.key(number), name, stack, inputs, given, named, result)
            except Exception as error:  # never out of the user's forward
                self.skip(f"record: {type(error).__name__}")
        return result

    def returned(self, layer, api, frame, list inputs, tuple args, dict kwargs, result):
        """A module has returned: record it as a layer of the network, and as a call of an API.

        `layer` or `api` are None for a module that is no such thing. `inputs` may have been captured before, under
        names without that of the call; then `kwargs` are what is not among them.
        """
        cdef Py_ssize_t number
        cdef str base, name
        cdef bint wanted
        cdef bytes stack = None
        if self.recording and layer is not None and self.takes(layer.name):
            if not self.begun:
                self.begin()
            stack = self.stacks.places(frame, self.short_stacks)
            self.stacks.put(layer.key, stack)
            self.put(self.layer_lines(layer), [])
        if api is None:
            return
        base = api.base
        number = self.number(base)
        name = f"{base}_{number}"
        wanted = self.recording and self.takes(name)
        if self.retain_backward and not (self.exact or self.grad_enabled()):
            self.note(frame, base, name if wanted else None)
        if not wanted:
            return
        if inputs is not None:
            inputs = [(name + part, found, tensor) for part, found, tensor in inputs]
        if stack is None:
            stack = self.stacks.places(frame, self.short_stacks)
        self.finish(api.key(number), name, stack, inputs, args, kwargs, result)

    def repeat(self, call, result):
        """Hook the outputs of a call that backward has made again, whose gradients are those of the first run's call.

        `call` has a name, a request and the hooks of its outputs by record, to which new ones are added.
        """
        for record, found, tensor in self.outlines.take(
            f"{call.name}_forward_output", result, call.request.filter_data, self.look_inside
        ):
            if tensor is None or not tensor.requires_grad:
                continue
            gradient = call.gradients.get(record)
            if gradient is None:
                gradient = call.gradients[record] = self.gradient(record, found, call.request)
            self.hooked.append(tensor.register_hook(gradient).hooks_dict_ref)

    def write(self, list records):
        """The lines of records, and their arrays."""
        self.put(records, [])

    def note(self, frame, str base, name):
        """Note a call that is made without gradients, which backward may make again; `name` is None if not wanted."""
        raise NotImplementedError

    def hook(self, tensor, str name, found):
        """Record the gradient of an output when it comes."""
        self.follow(tensor, name, found)

    cdef list capture(self, str name, value, bint single):
        if self.outlined:
            return self.outlines.take(name, value, self.filtered, self.look_inside)
        return self.measured(name, value, single)

    cdef int finish(
        self, str key, str name, bytes stack, list inputs, tuple given, dict named, result
    ) except -1:
        """Record a call that has returned; `inputs` are None if they have not been captured before."""
        cdef list outputs
        if inputs is None:
            inputs = self.capture(f"{name}_forward_input", given, False)
        if named:
            inputs += self.keywords(f"{name}_forward_input", named)
        outputs = self.capture(f"{name}_forward_output", result, True)
        if not self.begun:
            self.begin()
        self.stacks.put(key, stack)
        self.put(inputs, outputs)
        if self.retain_backward:
            for found in outputs:
                tensor = (<tuple> found)[2]
                if tensor is None:
                    continue
                if type(tensor) in self.outlines.plain:
                    self.follow(tensor, (<tuple> found)[0], (<tuple> found)[1])
                else:
                    self.hook_subclass(tensor, (<tuple> found)[0], (<tuple> found)[1])
        return 0

    cdef int put(self, list inputs, list outputs) except -1:
        self.lines.extend(inputs, outputs)
        self.arrays(inputs)
        self.arrays(outputs)
        return 0

    cdef int arrays(self, list records) except -1:
        for found in records:
            array = (<tuple> (<tuple> found)[1])[1]
            if array is not None:
                self.output.array((<tuple> found)[0], array)
        return 0

    cdef int follow(self, tensor, str name, found) except -1:
        if not tensor.requires_grad:
            return 0
        self.hooked.append(tensor.register_hook(self.gradient(name, found, self.request)).hooks_dict_ref)
        if len(self.hooked) > self.sweep_at:
            self.sweep()
        return 0

    cdef Gradient gradient(self, str name, found, request):
        """The hook of an output that was recorded under a name."""
        cdef Gradient gradient = Gradient.__new__(Gradient)
        gradient.recorder = self
        gradient.name = name.replace("_forward_output", "_backward_input")
        gradient.request = request
        gradient.tail = (<tuple> found)[0] if request.dump_type == "stack" else None
        return gradient

    cdef int sweep(self) except -1:
        """Let go of the hooks of finished graphs."""
        cdef list before = self.hooked
        self.hooked = []
        alive = [reference for reference in before if reference() is not None]
        self.hooked += alive
        self.sweep_at = max(SWEEP, 2 * len(self.hooked))
        return 0


cdef class Gradient:
    """The hook of one recorded output.

    In a stack dump a gradient has the type and the shape of its output, and nothing of it is looked at.

    Attributes
    ----------
    recorder : TensorRecorder
    name : str
        The record's.
    request : Request
        What was asked for when the output was recorded.
    times : int
        How often the gradient has come: once for each backward through the graph.
    """

    cdef readonly TensorRecorder recorder
    cdef readonly str name
    cdef readonly object request
    cdef readonly Py_ssize_t times
    cdef str tail

    __torch_unserializable__ = True  # pickling the tensor needs no warning

    def __call__(self, gradient):
        cdef TensorRecorder recorder = self.recorder
        if self.tail is not None and recorder.recording and not (recorder.exact or gradient is None):
            recorder.lines.one(self.record(), self.tail)
        else:
            recorder.arrived(self, gradient)

    cpdef str record(self):
        """The record of the gradient that has come now: that of a later backward through the graph says which."""
        self.times += 1
        return self.name if self.times == 1 else f"{self.name}.pass{self.times}"


cdef class Gate:
    """What one thread is inside of, and its way of a call of the framework to those who know what it is.

    Parameters
    ----------
    called : callable
        Given each call that matters and this gate; makes it, and returns its result.
    altered : frozenset of callable
        Functions that matter wherever they are called.

    Attributes
    ----------
    plain : set of callable
        Functions met that never matter.
    pushed : bool
        Whether the mode is on the thread's stack.
    depth : int
        Listed modules around us: only their own record counts.
    hidden : int
        Steps of optimizers around us.
    away : bool
        The mode has left for them.
    stays : bool
        The mode is here for good, not for one module's call.
    told : bool
        That only modules are seen here.
    open : list of tuple
        Modules being called: module, captured input, exception in flight, whether the mode has left for it.
    behind : Module or None
        A listed module that has returned, whose hooks may still call.
    """

    cdef readonly set plain
    cdef public object behind
    cdef public Py_ssize_t depth, hidden
    cdef public bint pushed, away, stays, told
    cdef readonly list open
    cdef object called
    cdef frozenset altered

    def __init__(self, called, frozenset altered):
        self.called = called
        self.altered = altered
        self.plain = set()
        self.open = []

    def reset(self):
        """As if nothing were around us."""
        self.depth = self.hidden = 0
        self.pushed = self.away = self.stays = self.told = False
        self.open.clear()
        self.behind = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.plain or ((self.depth or self.hidden) and function not in self.altered):
            return function(*args, **kwargs) if kwargs else function(*args)
        return self.called(function, args, {} if kwargs is None else kwargs, self)
