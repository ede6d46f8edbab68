import type { Congestion } from '../problem/congestion.js';

/** Largest gap between curve and tangents, as a share of the curve's value ... */
export const SEGMENT_ERROR = 0.05;
/** ... plus this share of its value at the hard limit, without which the flat start would take endless pieces. */
const SEGMENT_FLOOR = 1e-3;

/** Segments are no shorter than the range over this. */
const MOST_SEGMENTS = 64;
/**
 * Segments above the target where many engines are nearly full. Tangents close to the curve can still differ by seconds in
 * price there, and differences of price decide who goes where: with fewer, the polish has ten times as much to do.
 */
const STEEP_SEGMENTS = 8;

/** A convex cost from below: pieces of tangents, in ascending order of utilisation and price. */
export interface Segments {
  /** Length in utilisation; they add up to the hard limit. */
  readonly widths: readonly number[];
  /** Derivative of the cost at the point of contact. */
  readonly prices: readonly number[];
}

/** Points of contact in 0..max whose tangents stay within `SEGMENT_ERROR` of the curve. */
export function coarsePoints(congestion: Congestion): readonly number[] {
  return pointsUpTo(congestion, congestion.max);
}

/** The same, with many more above the target. */
export function steepPoints(congestion: Congestion): readonly number[] {
  const { max, target } = congestion;
  if (target >= max) return coarsePoints(congestion);
  const points = [...pointsUpTo(congestion, target)];
  for (let piece = 1; piece <= STEEP_SEGMENTS; piece++) {
    points.push(target + ((max - target) * piece) / STEEP_SEGMENTS);
  }
  return points;
}

function pointsUpTo(congestion: Congestion, end: number): readonly number[] {
  const floor = SEGMENT_FLOOR * congestion.cost(congestion.max);
  const points = [0];
  for (let at = 0; at < end; ) {
    at = Math.min(end, farthest(congestion, at, floor));
    points.push(at);
  }
  return points;
}

/** Tangents at these points (ascending, the first one 0) up to where neighbours meet. */
export function segmentsAt(congestion: Congestion, points: readonly number[]): Segments {
  const widths: number[] = [];
  let start = 0;
  points.forEach((point, index) => {
    const next = points[index + 1];
    const end = next === undefined ? congestion.max : meetingPoint(congestion, point, next);
    widths.push(Math.max(0, end - start));
    start = Math.max(start, end);
  });
  return { widths, prices: points.map((point) => congestion.price(point)) };
}

/** The farthest point whose tangent, together with the one at `from`, stays close enough to the curve between them. */
function farthest(congestion: Congestion, from: number, floor: number): number {
  if (closeEnough(congestion, from, congestion.max, floor)) return congestion.max;
  let low = from;
  let high = congestion.max;
  for (let step = 0; step < 20; step++) {
    const middle = 0.5 * (low + high);
    if (closeEnough(congestion, from, middle, floor)) low = middle;
    else high = middle;
  }
  return Math.min(Math.max(low, from + congestion.max / MOST_SEGMENTS), congestion.max);
}

/** Tangents are farthest from a convex curve where they meet. */
function closeEnough(congestion: Congestion, a: number, b: number, floor: number): boolean {
  const at = meetingPoint(congestion, a, b);
  const cost = congestion.cost(at);
  const tangent = congestion.cost(a) + congestion.price(a) * (at - a);
  return cost - tangent <= SEGMENT_ERROR * cost + floor;
}

function meetingPoint(congestion: Congestion, a: number, b: number): number {
  const steepening = congestion.price(b) - congestion.price(a);
  if (!(steepening > 0)) return 0.5 * (a + b);
  const at =
    (congestion.cost(a) - a * congestion.price(a) - congestion.cost(b) + b * congestion.price(b)) /
    steepening;
  return Math.min(Math.max(at, a), b);
}
