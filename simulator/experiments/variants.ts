import type { PolicyFactory } from '../policies/policy.js';
import { proportional } from '../policies/proportional.js';
import { wardrop } from '../policies/wardrop.js';

const slower = (engine: string) => (engine === 'b' ? 1.3 : 1);
const faster = (engine: string) => (engine === 'b' ? 0.7 : 1);

/** The old controller over gain and smoothing, and Wardrop with penalties in force or with a profile that is wrong about one engine. */
export const variants: Readonly<Record<string, PolicyFactory>> = {
  ...Object.fromEntries(
    [0.02, 0.05, 0.1, 0.2, 0.5].flatMap((gain) =>
      [0.1, 0.5].map((smoothing) => {
        const id = `proportional-${gain}-${smoothing}`;
        return [id, proportional({ gain, smoothing }, id)];
      }),
    ),
  ),
  'wardrop-b-30%-slower': wardrop({ profileError: slower }),
  'wardrop-b-30%-faster': wardrop({ profileError: faster }),
  'wardrop-with-penalties': wardrop({ penalties: true }),
};
