import { HASH_SPACE, type Segment } from '../plan.js';

/** Exclusive end of a segment or run: where the next one starts, or the end of the hash space. */
export function endOf(segments: readonly { readonly start: number }[], index: number): number {
  return segments[index + 1]?.start ?? HASH_SPACE;
}

/** The parts of [start, end) that lie in one segment each, in order. */
export function partsOf<T extends { readonly start: number }>(
  segments: readonly T[],
  start: number,
  end: number,
): { readonly start: number; readonly end: number; readonly segment: T }[] {
  let low = 0;
  let high = segments.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (segments[middle]!.start <= start) low = middle;
    else high = middle - 1;
  }
  const parts: { start: number; end: number; segment: T }[] = [];
  for (let index = low; index < segments.length && segments[index]!.start < end; index++) {
    const segment = segments[index]!;
    parts.push({
      start: Math.max(start, segment.start),
      end: Math.min(end, endOf(segments, index)),
      segment,
    });
  }
  return parts;
}

/** Neighbouring segments of equal owner joined. */
export function runsOf(segments: readonly Segment[]): { readonly start: number; readonly ownerId: string }[] {
  return segments
    .filter(({ ownerId }, index) => ownerId !== segments[index - 1]?.ownerId)
    .map(({ start, ownerId }) => ({ start, ownerId }));
}
