// Numbers of a body as far as they matter: whole and not negative, and of those that are not below 2^53 only that they
// are very large.

/** What stands for all that is larger. */
export const LARGEST: u64 = (1 << 53) - 1;

/** The number with one more digit behind it. */
// @ts-ignore: decorator
@inline
export function withDigit(number: u64, byte: u8): u64 {
  return min(number * 10 + <u64>(byte - 0x30), LARGEST);
}

/** Whether the number has room for another digit, so that one behind the point can be kept. */
// @ts-ignore: decorator
@inline
export function hasRoom(number: u64): bool {
  return number <= (LARGEST - 9) / 10;
}

/** The whole part of a number times a power of ten. */
export function shifted(number: u64, power: i32): u64 {
  let result = number;
  for (let i = power; i > 0 && result > 0 && result < LARGEST; i--) result = min(result * 10, LARGEST);
  for (let i = power; i < 0 && result > 0; i++) result /= 10;
  return result;
}

/** The number that a text of digits alone says, -1 if it is no such text. */
export function numberIn(at: usize, length: usize): i64 {
  if (length == 0) return -1;
  let number: u64 = 0;
  for (let i: usize = 0; i < length; i++) {
    const byte = load<u8>(at + i);
    if (byte < 0x30 || byte > 0x39) return -1;
    number = withDigit(number, byte);
  }
  return number;
}
