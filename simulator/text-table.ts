/** Columns under each other, the first one to the left, the others to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const cell = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[column]! + 3);
  return rows.map((row) => row.map(cell).join('').trimEnd()).join('\n');
}

export function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
