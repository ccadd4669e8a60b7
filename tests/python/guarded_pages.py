"""Memory that ends in a fault: whoever touches what lies around it does not go unnoticed."""

import ctypes
import mmap

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)


class GuardedPages:
    """Memory between two pages that cannot be read or written."""

    def __init__(self, size):
        page = mmap.PAGESIZE
        self.size = -(-max(size, 1) // page) * page
        self._map = mmap.mmap(-1, self.size + 2 * page)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for guard in (self._start, self._start + page + self.size):
            if _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")

    def copy(self, array, at_end):
        """A copy of a row-contiguous array that begins at the first byte, or ends at the last."""
        first = mmap.PAGESIZE + (self.size - array.nbytes if at_end else 0)
        place = np.frombuffer(self._map, array.dtype, array.size, first).reshape(array.shape)
        place[...] = array
        return place
