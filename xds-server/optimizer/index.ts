export { Optimizer, type OptimizerOptions } from './optimizer.js';
export type * from './solution.js';
