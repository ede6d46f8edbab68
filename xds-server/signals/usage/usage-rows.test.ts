import { expect, it } from 'vitest';
import { type Field, type RowLayout, sectionNames, sections } from '../../../wire/usage-report-rows.js';
import { addRows, differenceOf } from './usage-rows.js';

type Row = Record<string, bigint | number | number[]>;

/** Of which the field at a place is counted to `count(place)`. */
function rowOf(layout: RowLayout<unknown>, count: (place: number) => number): Row {
  const fields = Object.entries<Field>(layout.fields);
  return Object.fromEntries(
    fields.map(([name, field], place) => {
      if (field.kind === 'hash') return [name, 7n];
      if (field.kind === 'integer') return [name, 7];
      return [name, 'length' in field ? [count(place), count(place) + 1] : count(place)];
    }),
  );
}

it('each field of each kind of row is added to the same one, and taken from it, in the same order', () => {
  for (const name of sectionNames) {
    const layout = sections[name].row as RowLayout<unknown>;
    const before = rowOf(layout, (place) => 4 ** place);
    const after = rowOf(layout, (place) => 3 * 4 ** place);
    const doubled = (row: Row) =>
      Object.entries(row).map(([field, value]) => {
        if (typeof value === 'number' && value !== 7) return [field, 2 * value];
        return [field, Array.isArray(value) ? value.map((each) => 2 * each) : value];
      });
    expect(Object.entries(addRows<unknown>(before, before, layout) as Row), name).toEqual(doubled(before));
    const fewer = rowOf(layout, (place) => 2 * 4 ** place);
    const lists = Object.entries(fewer).map(([field, value]) =>
      Array.isArray(value) ? [field, [value[0], value[0]]] : [field, value],
    );
    expect(Object.entries(differenceOf<unknown>(after, before, layout) as Row), name).toEqual(lists);
  }
});
