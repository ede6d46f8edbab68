import type { PolicyFactory } from '../policies/policy.js';
import { proportional } from '../policies/proportional.js';
import { wardrop } from '../policies/wardrop.js';

/** The old controller over gain and smoothing, and Wardrop with penalties of slow engines in force and only observed. */
export const variants: Readonly<Record<string, PolicyFactory>> = {
  ...Object.fromEntries(
    [0.02, 0.05, 0.1, 0.2, 0.5].flatMap((gain) =>
      [0.1, 0.5].map((smoothing) => {
        const id = `proportional-${gain}-${smoothing}`;
        return [id, proportional({ gain, smoothing }, id)];
      }),
    ),
  ),
  'wardrop-with-penalties': wardrop({ outlierPenalty: 'enforce' }),
  'wardrop-without-penalties': wardrop({ outlierPenalty: 'observe' }),
};
