export { checkSolution } from './check.js';
export { type EngineCost, type ExplainedPair, type Explanation, explain } from './explain.js';
export { explanationText } from './explain-text.js';
export { Optimizer, type OptimizerOptions } from './optimizer.js';
export { refuseFaults } from './refusal.js';
export type * from './solution.js';
export {
  type Cause,
  type CauseEffect,
  type WeightChange,
  type WhatChanged,
  whatChanged,
  whatChangedText,
} from './what-changed.js';
