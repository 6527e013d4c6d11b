# What is C here: the work that is the same for every recorded call: its number and names, the outlines of its arguments
# and results, its lines and its stack, and the hooks of its gradients. In stack mode there is little else. What is
# Python: the selection of calls, the inspection of anything but plain tensors, and the output
# (dumpsim.frontends.apidump).
#
# The caller guarantees: torch dispatches to no override while arguments and results are inspected, so that attributes
# of tensors are the real ones. torch is not imported; its types and functions are passed in. Data that belong together
# are stored without running Python in between, so that threads need no lock.
"""The recorder of the calls of an API dump."""

cimport cython

from dumpsim._ext.frames cimport Frames


cdef Py_ssize_t SWEEP = 4096  # number of gradient hooks from which on those of finished graphs are released


cdef inline bint is_number_or_none(leaf):
    return leaf is None or type(leaf) is int or type(leaf) is float or type(leaf) is bool


cdef class Lines:
    """Queued info lines: names, and the rest of the lines.

    Two lists of str are cheap for Python's garbage collector.

    Parameters
    ----------
    limit : int
        Number of lines that are written at a time.
    write : callable
        Called, without arguments, when there are that many.

    Attributes
    ----------
    total : int
        Number of lines added so far.
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
        """Add one line."""
        self.one(name, tail)

    cdef int one(self, str name, str tail) except -1:
        with cython.critical_section(self):
            self.names.append(name)
            self.tails.append(tail)
            self.total += 1
        return self.check()

    cdef int extend(self, list first, list second) except -1:
        """Add the lines of two lists of (name, (tail, ...), ...), without lines of other threads in between."""
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
        """Return the queued names and tails, and empty the queue."""
        with cython.critical_section(self):
            names, tails = self.names, self.tails
            self.names, self.tails = [], []
        return names, tails


cdef class Outlines:
    """Outlines of tensors in an API dump: type and shape, without values; equal outlines are stored once.

    Parameters
    ----------
    plain : frozenset of type
        Tensor types that are not subclasses with special behaviour.
    strided : layout
        The layout of tensors that have bytes of their own.
    wrapped : callable
        Returns whether a tensor is a wrapper of another one.
    spell : callable
        Takes a type and a shape; returns whether they are data, and their outline, None if it needs the tensor.
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
        """Return [(name, outline, tensor)] of `value`, or of each of its members with its position.

        `filtered` drops numbers and tensors that are not data; `otherwise(found, name, leaf)` handles everything else.
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
    """Records the calls of a network; the subclass, a session, does the rest in Python.

    Parameters
    ----------
    lines : Lines
    stacks : Frames
    exact, retain_backward : bool
        See the sessions.

    Attributes
    ----------
    recording : bool
        True from start to stop.
    begun : bool
        Whether anything has been recorded.
    request : Request
        The request passed at start.
    npy : bool
        Whether arrays were requested.
    selection : Selection
        The selection of calls.
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
        """Set the request from here on."""
        self.request = request
        self.outlined = request.dump_type == "stack"
        self.npy = request.npy
        self.filtered = request.filter_data
        self.short_stacks = request.filter_stack
        self.all = request.mode == "all"

    def begin(self):
        """Called when something is recorded for the first time."""
        raise NotImplementedError

    def count(self, str label):
        """Return the number of this call of an API, and increment it."""
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
    """Records the calls of a framework whose tensors have gradient hooks.

    Attributes
    ----------
    outlines : Outlines
    grad_enabled : callable
        Returns whether the framework records gradients now.
    hooked : list
        References to the hooks of tensors, which are dropped with their graph.
    """

    cdef public Outlines outlines
    cdef public object grad_enabled
    cdef readonly list hooked
    cdef Py_ssize_t sweep_at

    def __cinit__(self):
        self.hooked = []
        self.sweep_at = SWEEP

    def captured(self, str name, value, bint single):
        """Capture arguments or results as they are now; `name` is that of the record without positions."""
        return self.capture(name, value, single)

    def call(self, Gate gate, api, function, tuple args, dict kwargs, frame, tuple given, dict named):
        """Make a call of an API and record it; `given` and `named` are its arguments in `frame`, the caller.

        Raises
        ------
        Exception
            Only exceptions of the function itself.
        """
        cdef str base = api.base
        cdef Py_ssize_t number = self.number(base)
        cdef str name = f"{base}_{number}"
        cdef bint wanted = self.recording and self.takes(name)
        cdef list inputs = None
        if wanted and not self.exact:  # before the call, which may overwrite its inputs
            try:
                inputs = self.capture(f"{name}_forward_input", given, False)
            except Exception as error:  # a container that cannot be iterated must not stop the user's program
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
        """Record a module that has returned: as a layer of the network, and as a call of an API.

        `layer` or `api` is None if it is not such a thing. `inputs` may have been captured before, under names without
        that of the call; then `kwargs` are the remaining arguments.
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
        """Hook the outputs of a call that backward repeats; its gradients belong to the call of the first run.

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
        """Write the lines of records, and their arrays."""
        self.put(records, [])

    def note(self, frame, str base, name):
        """Note a call without gradients, which backward may repeat; `name` is None if it is not recorded."""
        raise NotImplementedError

    def hook(self, tensor, str name, found):
        """Record the gradient of an output when it is computed."""
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
        """Return the hook of an output that was recorded under a name."""
        cdef Gradient gradient = Gradient.__new__(Gradient)
        gradient.recorder = self
        gradient.name = name.replace("_forward_output", "_backward_input")
        gradient.request = request
        gradient.tail = (<tuple> found)[0] if request.dump_type == "stack" else None
        return gradient

    cdef int sweep(self) except -1:
        """Release the hooks of finished graphs."""
        cdef list before = self.hooked
        self.hooked = []
        alive = [reference for reference in before if reference() is not None]
        self.hooked += alive
        self.sweep_at = max(SWEEP, 2 * len(self.hooked))
        return 0


cdef class Gradient:
    """The hook of one recorded output.

    In a stack dump a gradient has the type and shape of its output, so that it need not be inspected.

    Attributes
    ----------
    recorder : TensorRecorder
    name : str
        Name of the record.
    request : Request
        The request when the output was recorded.
    times : int
        How often the gradient was computed: once for each backward pass through the graph.
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
        """Return the record's name of the next gradient; later backward passes through the graph are numbered."""
        self.times += 1
        return self.name if self.times == 1 else f"{self.name}.pass{self.times}"


cdef class Gate:
    """The state of one thread, and the entry point of its calls of the framework.

    Parameters
    ----------
    called : callable
        Called with each relevant call and this gate; makes the call and returns its result.
    altered : frozenset of callable
        Functions that are relevant wherever they are called.

    Attributes
    ----------
    plain : set of callable
        Functions seen so far that are never relevant.
    pushed : bool
        Whether the mode is on the thread's stack.
    depth : int
        Number of active listed modules; inside them only their own calls are recorded.
    hidden : int
        Number of active optimizer steps.
    away : bool
        Whether the mode was popped for an optimizer step.
    stays : bool
        Whether the mode remains on the stack, rather than for one module's call only.
    told : bool
        Whether the warning that only modules are seen on this thread was issued.
    open : list of tuple
        Active modules: module, captured input, exception in flight, whether the mode was popped for it.
    behind : Module or None
        The last listed module that has returned, whose hooks may still make calls.
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
        """Reset the state, as if no module or step were active."""
        self.depth = self.hidden = 0
        self.pushed = self.away = self.stays = self.told = False
        self.open.clear()
        self.behind = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.plain or ((self.depth or self.hidden) and function not in self.altered):
            return function(*args, **kwargs) if kwargs else function(*args)
        return self.called(function, args, {} if kwargs is None else kwargs, self)
