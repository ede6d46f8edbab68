import { beforeAll, expect, it, vi } from 'vitest';
import { filterModule } from '../filter-host/build.js';
import { namedScenario } from '../scenario-file/library.js';
import { World } from '../virtual/world.js';
import { policies } from './index.js';
import { wardrop } from './wardrop.js';

vi.setConfig({ testTimeout: 120_000 });
beforeAll(filterModule, 60_000);

// At 89 % of all capacity bursts make queues.
it.each(['three-regions', 'all-streamed'])(
  'a healthy fleet near its capacity is the same with penalties as without: %s',
  async (name) => {
    const { scenario } = namedScenario(name, Object.keys(policies));
    const short = { ...scenario, warmupSeconds: 15, seconds: 35, settledFrom: 15 };
    const records = await Promise.all(
      (['enforce', 'observe'] as const).map((outlierPenalty) =>
        World.run(short, wardrop({ outlierPenalty }), 1),
      ),
    );
    expect(records[0]!.samples).toEqual(records[1]!.samples);
    expect(records[0]!.ends).toEqual(records[1]!.ends);
  },
);
