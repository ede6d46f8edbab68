export { checkSolution } from './check/check.js';
export { type EngineCost, type ExplainedPair, type Explanation, explain } from './explain/explain.js';
export { explanationText } from './explain/explain-text.js';
export {
  type Cause,
  type CauseEffect,
  type WeightChange,
  type WhatChanged,
  whatChanged,
  whatChangedText,
} from './explain/what-changed.js';
export { defaultExecutor, Optimizer, type OptimizerOptions } from './optimizer.js';
export { followable } from './problem/bounds.js';
export { refuseFaults } from './refusal.js';
export type * from './solution.js';
