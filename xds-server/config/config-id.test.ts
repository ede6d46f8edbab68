import { expect, it } from 'vitest';
import { configId } from './config-id.js';
import { loadConfig } from './load.js';

function idOf(rest: object = {}): string {
  const file = {
    frontends: [{ id: 'west', region: 'west' }],
    engines: [{ id: 'a', region: 'west', models: ['m'], endpoints: ['10.0.0.1:80'] }],
    ...rest,
  };
  return configId(loadConfig('/none/fleet.yaml', () => JSON.stringify(file)));
}

it('a configuration is the same whatever is said of the server itself', () => {
  expect(idOf({ server: { stateFile: 'other.json' } })).toBe(idOf());
  expect(idOf({ policy: { targetUtilization: 0.8 } })).not.toBe(idOf());
});
