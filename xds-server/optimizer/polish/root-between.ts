const MOST_STEPS = 60;

/**
 * Root between 0 and `end` of a monotone function with values of opposite sign there, to within a tolerance of its value.
 * False position; an end that stays twice counts half, which keeps it fast.
 */
export function rootBetween(
  value: (at: number) => number,
  first: number,
  end: number,
  last: number,
  tolerance: number,
): number {
  let near = 0;
  let far = end;
  let atNear = first;
  let atFar = last;
  for (let step = 0; step < MOST_STEPS; step++) {
    const middle = near + ((far - near) * atNear) / (atNear - atFar);
    const found = value(middle);
    if (Math.abs(found) <= tolerance || middle === near || middle === far) return middle;
    if (found * atFar < 0) {
      near = far;
      atNear = atFar;
    } else {
      atNear *= 0.5;
    }
    far = middle;
    atFar = found;
  }
  return far;
}
