/** `${NAME}`, `$NAME` and `%NAME%`, as shells and templates write what they put something else in the place of. */
const VARIABLE = /\$\{[A-Za-z_][^}]*\}|^\$[A-Z_][A-Z0-9_]*$|^%[A-Z_][A-Z0-9_]*%$/;

/** What to do about a text that seems to stand for a variable of the environment; undefined when it does not. */
export function variableHint(text: unknown): string | undefined {
  if (typeof text !== 'string' || !VARIABLE.test(text)) return undefined;
  return 'variables of the environment are not filled in; write the value, and secrets into a file';
}
