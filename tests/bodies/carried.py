"""Values that loops carry and that are wanted behind them, where threads leave at a break, in different iterations."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("float", "float32"), ("half", "float16"), ("int", "int32"), ("long", "int64"))

for _type, _dtype in _TYPES:
    for _most in ("40", "most[i]"):

        def _run(x, most, is_same=_most == "40"):
            t = x.dtype.type
            i = np.arange(len(x))
            a, b, c, d, e = x.copy(), x + t(1), x * t(2), np.zeros_like(x), np.ones_like(x)
            steps, live = np.zeros(len(x), np.int32), np.ones(len(x), bool)
            limit = np.full(len(x), 40) if is_same else most
            while True:
                live &= steps < limit
                live &= ~(a * t(2) + b > (60 + i % 7).astype(x.dtype))
                if not live.any():
                    return steps, a, b, c, d, e
                before = a
                a, b = np.where(live, b, a), np.where(live, before + e, b)
                c, d = np.where(live, c + a, c), np.where(live, d + t(1), d)
                e = np.where(live, np.where(d > t(6), t(3), e), e)
                steps += live

        body(
            f"""
            uint i = thread_position_in_grid.x;
            {_type} a = x[i], b = a + 1, c = a * 2, d = 0, e = 1, limit = 60 + int(i) % 7;
            int step = 0;
            while (step < {_most}) {{
                if (a * 2 + b > limit) break;
                {_type} before = a;
                a = b;
                b = before + e;
                c += a;
                d += 1;
                if (d > 6) e = 3;
                ++step;
            }}
            steps[i] = step;
            va[i] = a; vb[i] = b; vc[i] = c; vd[i] = d; ve[i] = e;
            """,
            name=f"loops_carry_{_type}_{'a_known_number' if _most == '40' else 'as_often_as_is_said'}",
            inputs=lambda rng, dtype=_dtype: {
                "x": rng.integers(-8, 30, 150).astype(DTYPES[dtype]),
                "most": rng.integers(0, 50, 150).astype(np.int32),
            },
            outputs={"steps": ((150,), "int32")} | {f"v{n}": ((150,), _dtype) for n in "abcde"},
            grid=(150, 1, 1),
            threadgroup=(64, 1, 1),
            constructs="structure.while",
        )(_run)
