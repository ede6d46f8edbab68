import * as highs from 'highs';

/** The package declares its loader as CommonJS would export it; Node gets the ES module, whose default it is. */
const loader = highs.default as unknown as typeof highs.default.default;

/** Loads a fresh HiGHS. Each load has its own memory. */
export function loadHighs(): Promise<highs.Highs> {
  return loader();
}
