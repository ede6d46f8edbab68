import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { configReference } from './reference.js';

it('docs/configuration.md is what the schema says (update with vitest -u)', async () => {
  const file = resolve(import.meta.dirname, '../../docs/configuration.md');
  await expect(configReference()).toMatchFileSnapshot(file);
});
