import { defineConfig } from 'vitest/config';

// Unit and property tests sit beside the code. End-to-end tests (test/e2e) start real Envoys and are run one file
// at a time: two cores carry one harness, not several.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            '{wire,xds-server,simulator,bench}/**/*.test.ts',
            'test/{unit,filter,conformance}/**/*.test.ts',
          ],
          testTimeout: 20_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
