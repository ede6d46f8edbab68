import fc from 'fast-check';

/**
 * Properties draw the same inputs in every run, so that what fails has to do with what was changed. `FC_SEED`, a whole
 * number, has them draw others.
 */
const seed = Number(process.env.FC_SEED ?? 1);
if (!Number.isInteger(seed)) throw new Error(`FC_SEED must be a whole number, got ${process.env.FC_SEED}`);
fc.configureGlobal({ seed });
