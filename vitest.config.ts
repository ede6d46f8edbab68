import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Unit and property tests sit beside the code. They leave nothing behind, so the files of one worker share what they
// import; some of them wait, so that there is one worker more than cores. End-to-end tests (test/e2e) start real Envoys
// and wait most of the time, but may not be kept waiting: two cores carry two of them, more cores three.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            '{wire,xds-server,simulator,bench}/**/*.test.ts',
            'test/{unit,filter,conformance,control-server}/**/*.test.ts',
          ],
          setupFiles: ['test/properties.ts'],
          // Seconds on an idle machine may be a minute on a busy one.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          isolate: false,
          maxWorkers: availableParallelism() + 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          setupFiles: ['test/e2e/harness/setup.ts'],
          // For tests that wait for several things in turn, each with a limit of its own that tells what it waited for.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          maxWorkers: availableParallelism() > 2 ? 3 : 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
