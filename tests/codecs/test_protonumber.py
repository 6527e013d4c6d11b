"""Numbers of types and layouts in dump files: the documents' tables, row by row. [spec ge 3.3]"""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.codecs import protonumber
from dumpsim.codecs.protonumber import DTYPES_PROTO, FORMATS, dtype_name, dtype_number, format_number, from_ge
from dumpsim.core.errors import DtypeError, FormatError

# number in dump files, GE's number, vendor's name, our name where it is not the vendor's in lower case
TYPES = """
0 28 UNDEFINED
1 0 FLOAT float32
2 1 FLOAT16
3 2 INT8
4 4 UINT8
5 6 INT16
6 7 UINT16
7 3 INT32
8 9 INT64
9 8 UINT32
10 10 UINT64
11 12 BOOL
12 11 DOUBLE float64
13 13 STRING
14 14 DUAL_SUB_INT8
15 15 DUAL_SUB_UINT8
16 16 COMPLEX64
17 17 COMPLEX128
18 18 QINT8
19 19 QINT16
20 20 QINT32
21 21 QUINT8
22 22 QUINT16
23 23 RESOURCE
24 24 STRING_REF
25 25 DUAL
26 26 VARIANT
27 27 BF16 bfloat16
28 29 INT4
29 30 UINT1
30 31 INT2
31 32 UINT2
32 33 COMPLEX32
33 34 HIFLOAT8
34 35 FLOAT8_E5M2
35 36 FLOAT8_E4M3FN
36 37 FLOAT8_E8M0
37 38 FLOAT6_E3M2
38 39 FLOAT6_E2M3
39 40 FLOAT4_E2M1
40 41 FLOAT4_E1M2
41 42 HIFLOAT4
42 43 HIFLOAT4_SCALE
"""
LAYOUTS = """
NCHW 0, NHWC 1, ND 2, NC1HWC0 3, FRACTAL_Z 4, NC1C0HWPAD 5, NHWC1C0 6, FSR_NCHW 7, FRACTAL_DECONV 8, C1HWNC0 9,
FRACTAL_DECONV_TRANSPOSE 10, FRACTAL_DECONV_SP_STRIDE_TRANS 11, NC1HWC0_C04 12, FRACTAL_Z_C04 13, CHWN 14,
FRACTAL_DECONV_SP_STRIDE8_TRANS 15, HWCN 16, NC1KHKWHWC0 17, BN_WEIGHT 18, FILTER_HWCK 19, HASHTABLE_LOOKUP_LOOKUPS 20,
HASHTABLE_LOOKUP_KEYS 21, HASHTABLE_LOOKUP_VALUE 22, HASHTABLE_LOOKUP_OUTPUT 23, HASHTABLE_LOOKUP_HITS 24,
C1HWNCoC0 25, MD 26, NDHWC 27, FRACTAL_ZZ 28, FRACTAL_NZ 29, NCDHW 30, DHWCN 31, NDC1HWC0 32, FRACTAL_Z_3D 33, CN 34,
NC 35, DHWNC 36, FRACTAL_Z_3D_TRANSPOSE 37, FRACTAL_ZN_LSTM 38, FRACTAL_Z_G 39, RESERVED 40, ALL 41, NULL 42,
ND_RNN_BIAS 43, FRACTAL_ZN_RNN 44, YUV 45, YUV_A 46, NCL 47, FRACTAL_Z_WINO 48, C1HWC0 49, MAX 255
"""
ROWS = [(int(number), int(ge), name, *own) for number, ge, name, *own in map(str.split, TYPES.split("\n")[1:-1])]
SIZELESS = ("UNDEFINED", "STRING", "STRING_REF", "DUAL", "VARIANT", "HIFLOAT4_SCALE")
# types that numpy and ml_dtypes do not have; a resource is a handle, a quantised number has the width in its name
BITS = {"RESOURCE": 64, "DUAL_SUB_INT8": 8, "DUAL_SUB_UINT8": 8, "QINT8": 8, "QINT16": 16, "QINT32": 32, "QUINT8": 8,
        "QUINT16": 16, "UINT1": 1, "COMPLEX32": 32, "HIFLOAT8": 8, "FLOAT4_E1M2": 4, "HIFLOAT4": 4}  # fmt: skip
NARROW = {"int4": 4, "int2": 2, "uint2": 2, "float6_e3m2fn": 6, "float6_e2m3fn": 6, "float4_e2m1fn": 4}


def bits_of(name, own):
    """Bits of an element by the type's name, as numpy or ml_dtypes know it."""
    if name in SIZELESS:
        return 0
    if name in BITS:
        return BITS[name]
    alike = {"float8_e8m0": "float8_e8m0fnu", "float6_e3m2": "float6_e3m2fn", "float6_e2m3": "float6_e2m3fn",
             "float4_e2m1": "float4_e2m1fn"}.get(own, own)  # fmt: skip
    kind = np.dtype(alike) if hasattr(np, alike) else np.dtype(getattr(ml_dtypes, alike))
    return NARROW.get(alike, 8 * kind.itemsize)


def test_types_are_those_of_the_documents():
    assert (
        [row.number for row in DTYPES_PROTO.values()] == list(DTYPES_PROTO) == list(range(43)) == [r[0] for r in ROWS]
    )
    for number, ge, name, *rest in ROWS:
        own = rest[0] if rest else name.lower()
        assert (dtype_name(number), protonumber.vendor_name(number), protonumber.ge_number(number)) == (own, name, ge)
        assert from_ge(ge) == number
        for spelled in (own, name, name.lower(), own.upper()):
            assert dtype_number(spelled) == number
        assert DTYPES_PROTO[number].bits == bits_of(name, own), name


def test_layouts_are_those_of_the_documents():
    expected = {int(number): name for name, number in map(str.split, LAYOUTS.replace("\n", " ").split(","))}
    assert expected == FORMATS
    assert {format_number(name): name for name in expected.values()} == expected
    # spellings of ADUMP
    assert [format_number(name) for name in ("DHWCH", "NYUV", "NYUV_A")] == [31, 45, 46]


@pytest.mark.parametrize(
    ("lookup", "wrong", "kind", "text"),
    [
        (dtype_number, "float31", DtypeError,
         r"^'float31' has no number in dump files; allowed: undefined, float32, .*, hifloat4_scale "
         r"\(did you mean 'float32'\?\) \[DS-BIN-002\]$"),
        *[(lookup, number, DtypeError,
           rf"^{number} is not the number of a type in dump files; allowed: 0\.\.42 \[DS-BIN-002\]$")
          for lookup in (dtype_name, protonumber.vendor_name, protonumber.ge_number) for number in (-1, 43)],
        *[(from_ge, number, DtypeError, rf"^{number} is not the number of a GE type; allowed: 0, 1, 2, .*, 43 \[DS-BIN")
          for number in (-1, 5, 44)],
        (format_number, "NC1HWC1", FormatError,
         r"^'NC1HWC1' has no number in dump files; allowed: NCHW, .* \(did you mean 'NC1HWC0'\?\) \[DS-BIN-003\]$"),
        (format_number, "nchw", FormatError, "has no number in dump files"),
    ],
)  # fmt: skip
def test_unknown_names_and_numbers(lookup, wrong, kind, text):
    with pytest.raises(kind, match=text):
        lookup(wrong)
