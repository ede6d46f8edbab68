import { expect, it } from 'vitest';
import type { Status } from '../../admin/views/status.js';
import { statusText } from './status.js';

const atMs = 1_700_000_000_000;
const empty: Status = {
  ...{ atMs, startedAtMs: atMs, plan: null, plannedBy: null, steered: 1, alarms: [] },
  ...{ frontends: [], engines: [], envoys: [] },
};

it('indents further lines of an alarm', () => {
  const alarms = [{ id: 'config', sinceMs: atMs, message: 'the new one has problems:\nf.yaml:1:1: one' }];
  expect(statusText({ ...empty, alarms })).toContain(
    '1 alarm:\n  config, for 0 s: the new one has problems:\n    f.yaml:1:1: one\n',
  );
});

it('says when not all decisions are followed', () => {
  const plan = { id: 'abc', sequence: 7, createdAtMs: atMs, plain: null };
  const text = (steered: number) => statusText({ ...empty, plan, steered });
  expect(text(1)).not.toContain('steered');
  expect(text(0.3)).toContain(
    'plan 7 (abc) for 0 s\n30 % of the keys are steered (policy.steerPercent), the others',
  );
  const { steered: _, ...fromBefore } = { ...empty, plan };
  expect(statusText(fromBefore as Status)).toBe(text(1));
  expect(text(0)).toContain('\nnothing is steered (policy.mode or policy.steerPercent)');
});

it('says when the plan is not all by a solve', () => {
  const plan = { id: 'abc', sequence: 7, createdAtMs: atMs, plain: 'all weights are plain' };
  expect(statusText({ ...empty, plan })).toContain('plan 7 (abc) for 0 s\nall weights are plain\n');
});

it('counts all alarms, and shows of many some of each kind', () => {
  const down = Array.from({ length: 30 }, (_, index) => `replica-down:${index + 10}`);
  const alarms = [...down, 'shedding:m'].map((id) => ({ id, sinceMs: atMs, message: 'why' }));
  const text = statusText({ ...empty, alarms });
  expect(text).toContain('31 alarms:');
  expect(text.match(/replica-down:/g)).toHaveLength(5);
  expect(text).toContain('… and 25 more of replica-down');
  expect(text).toContain('shedding:m');
});
