import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MOST_SAMPLES, readSamples } from './metrics-text.js';

const wanted = (...names: string[]) => new Set(names);

it('skips comments and other metrics, and ignores time stamps and exemplars', () => {
  const page = [
    '# HELP a text a 9',
    '# TYPE a counter',
    'ab 1',
    ' # a 3',
    'a_b 1',
    'a:b 1',
    '{"a"} 1',
    'a{x="1"} 4 1700000000.5 # {trace_id="a 5"} 6 1700000000',
    '  a \t 7',
    'a{} 8\r',
    'b{x="1",} 9',
    '# EOF',
  ].join('\n');
  expect(readSamples(page, wanted('a', 'b')).map(({ name, value }) => [name, value])).toEqual([
    ['a', 4],
    ['a', 7],
    ['a', 8],
    ['b', 9],
  ]);
});

it('reads NaN, infinities and negative values as what they are', () => {
  const page = 'a NaN\na +Inf\na -Inf\na inf\na -1e3\na one';
  expect(readSamples(page, wanted('a')).map(({ value }) => value)).toEqual([
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.POSITIVE_INFINITY,
    -1000,
    Number.NaN,
  ]);
});

it('reads every label value as it was before it was escaped', () => {
  const escaped = (text: string) =>
    text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.double({ noNaN: true }), (one, two, value) => {
      const number = Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
      const page = `b 1\na{x="${escaped(one)}", y="${escaped(two)}"} ${number}\nb 2`;
      const [sample, ...rest] = readSamples(page, wanted('a'));
      expect(rest).toEqual([]);
      expect(sample!.value === value).toBe(true);
      expect([...sample!.labels]).toEqual([
        ['x', one],
        ['y', two],
      ]);
    }),
  );
});

it('takes a line that begins with a wanted name and makes no sense for a sample without a number', () => {
  const lines = [
    'a',
    'a ',
    'a{',
    'a{x="1" 2',
    'a{x="1"}3',
    'a{x="1} 4',
    'a-b 5',
    'a{} x',
    `a{x="${'y'.repeat(2e4)}"} 6`,
  ];
  for (const line of lines) {
    const samples = readSamples(`a{x="0"} 1\n${line}\na{x="2"} 2`, wanted('a'));
    expect(samples.map(({ value }) => value)).toEqual([1, Number.NaN, 2]);
  }
});

it('reads whatever bytes a page has', () => {
  const line = fc.oneof(fc.string(), fc.stringMatching(/^a[{}"\\=, a\n1]*$/));
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      for (const { name } of readSamples(lines.join('\n'), wanted('a'))) expect(name).toBe('a');
    }),
  );
});

it('reads a bounded number of samples', () => {
  expect(readSamples('a 1\n'.repeat(100_000), wanted('a'))).toHaveLength(MOST_SAMPLES + 1);
});
