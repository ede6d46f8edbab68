// Base64 as in RFC 4648, section 4, padded.

/** The six bits that a digit stands for, -1 if it is none. */
function bitsOf(digit: u32): i32 {
  if (digit >= 0x41 && digit <= 0x5a) return <i32>digit - 0x41;
  if (digit >= 0x61 && digit <= 0x7a) return <i32>digit - 0x61 + 26;
  if (digit >= 0x30 && digit <= 0x39) return <i32>digit - 0x30 + 52;
  if (digit == 0x2b) return 62;
  return digit == 0x2f ? 63 : -1;
}

/** Whether the text is not empty, whole groups of four, and padded only at its end. */
export function isBase64(at: usize, length: usize): bool {
  if (length == 0 || length & 3) return false;
  const digits = length - padding(at, length);
  for (let i: usize = 0; i < digits; i++) if (bitsOf(load<u8>(at + i)) < 0) return false;
  return true;
}

/** Decodes a text that `isBase64` to `to`, which has room for three bytes each four digits; returns their number. */
export function decodeBase64(at: usize, length: usize, to: usize): usize {
  const padded = padding(at, length);
  for (let i: usize = 0, out = to; i < length; i += 4, out += 3) {
    let group: u32 = 0;
    for (let n: usize = 0; n < 4; n++) group = (group << 6) | <u32>max(bitsOf(load<u8>(at + i + n)), 0);
    store<u8>(out, <u8>(group >> 16));
    store<u8>(out, <u8>(group >> 8), 1);
    store<u8>(out, <u8>group, 2);
  }
  return (length / 4) * 3 - padded;
}

function padding(at: usize, length: usize): usize {
  if (load<u8>(at + length - 1) != 0x3d) return 0;
  return load<u8>(at + length - 2) == 0x3d ? 2 : 1;
}
