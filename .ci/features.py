"""Print the instructions of this processor that NumPy uses and could do without."""

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

print(*(name for name in __cpu_dispatch__ if __cpu_features__.get(name)))
