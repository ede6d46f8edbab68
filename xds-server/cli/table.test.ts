import { expect, it } from 'vitest';
import { formatTable, shortTable } from './table.js';

it('a short table has all of few rows, and of many those that are worth it and a count of the others', () => {
  const table = (count: number) =>
    shortTable(
      ['number', 'kind'],
      Array.from({ length: count }, (_, index) => index),
      (number) => number % 10 === 0,
      (number) => [`${number}`, number % 2 === 0 ? 'even' : 'odd'],
      'as usual',
    );
  expect(table(20).split('\n')).toHaveLength(21);
  expect(table(21)).toBe(
    ['number  kind', '     0  even', '    10  even', '    20  even', '… and 18 more, as usual'].join('\n'),
  );
});

it('a table may have as many rows as a long recording has solves', () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => [`${index}`]);
  expect(formatTable([['solve'], ...rows]).slice(-'199999'.length)).toBe('199999');
});
