import { expect, it } from 'vitest';
import { PageReader } from '../../xds-server/signals/pages/engine-metrics.js';
import { signalMapping } from '../../xds-server/signals/pages/metric-names.js';
import { vllmPage } from './vllm-page.js';

it('is a page that gives every signal, for one rank and for several', () => {
  const reader = new PageReader(signalMapping({ kind: 'vllm', path: '/metrics' }));
  for (const ranks of [1, 4]) {
    const reading = reader.read(vllmPage(ranks));
    expect([...reading.values()].every((read) => 'value' in read)).toBe(true);
    expect(reading.get('running')).toMatchObject({ value: 12 * ranks });
  }
});
