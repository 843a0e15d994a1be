"""Prints the distance of a logistic map from its fixed point after many steps, for growth rates from 2.5 on."""

import sys

first, count = int(sys.argv[1]), int(sys.argv[2])
for number in range(first, first + count):
    growth = 2.5 + number / 40
    value = 0.4
    for _ in range(20_000):
        value = growth * value * (1 - value)
    print(f"{growth:.3f} {abs(value - (1 - 1 / growth)):.6f}")
