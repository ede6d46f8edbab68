import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packageFile } from '../../package-file.js';
import { alarmMeanings, runbook } from './runbook.js';

const manual = readFileSync(packageFile('docs', 'operations.md'), 'utf8');

it('has every alarm of the manual, under the kind that the dashboard links to', () => {
  const [, section] = manual.split('\n## Alarms\n');
  const rows = section!.split('\n## ')[0]!.match(/^\| `/gm)!;
  const kinds = alarmMeanings(manual).map(([kind]) => kind);
  expect(kinds.length).toBe(rows.length);
  expect(kinds).toEqual(
    expect.arrayContaining(['config', 'penalty', 'replica-down', 'shedding', 'envoy-silent']),
  );
  for (const kind of kinds) expect(runbook(manual)).toContain(`<dt id="${kind}">${kind}</dt>`);
});

it('takes the text of the manual for text, and shows code as such', () => {
  const page = runbook(
    '\n## Alarms\n\n| `a-b` | <b> of `x < y`, [there](y.md#z) |\n\n## Metrics\n\n| `c` | no |\n',
  );
  expect(page).toContain('<dt id="a-b">a-b</dt><dd>&lt;b&gt; of <code>x &lt; y</code>, there</dd>');
  expect(page).not.toContain('id="c"');
});
