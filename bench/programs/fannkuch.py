"""Fannkuch: permutations and reversals of small lists; loops, indexing, slices."""

import sys


def fannkuch(n: int) -> tuple[int, int]:
    permutation = list(range(n))
    count = list(range(1, n + 1))
    checksum = flips_max = rounds = 0
    left = n
    while True:
        while left != 1:
            count[left - 1] = left
            left -= 1
        first = permutation[0]
        if first:
            copy = permutation[:]
            flips = 0
            while first:
                copy[: first + 1] = copy[first::-1]
                flips += 1
                first = copy[0]
            flips_max = max(flips, flips_max)
            checksum += flips if rounds % 2 == 0 else -flips
        while True:
            if left == n:
                return checksum, flips_max
            permutation.insert(left, permutation.pop(0))
            count[left] -= 1
            if count[left] > 0:
                break
            left += 1
        rounds += 1


print(*fannkuch(int(sys.argv[1])))
