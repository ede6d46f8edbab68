/** Rows of text in aligned columns; the first row is the heading. Cells that are numbers are aligned right. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]!.length), 0),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          /^-?[\d.]+( %)?$/.test(cell) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const MOST_ROWS = 20;

/** All of few items; of many those that are worth it, and how many others there are, with what can be said `ofTheRest`. */
export function shortTable<T>(
  heading: readonly string[],
  items: readonly T[],
  isWorthIt: (item: T) => boolean,
  row: (item: T) => readonly string[],
  ofTheRest: string,
): string {
  const shown = items.length <= MOST_ROWS ? items : items.filter(isWorthIt);
  const table = formatTable([heading, ...shown.map(row)]);
  const left = items.length - shown.length;
  return left === 0 ? table : `${table}\n… and ${left} more, ${ofTheRest}`;
}
