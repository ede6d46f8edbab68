/** Of the file system's messages only the reason: `ENOENT: no such file or directory, open 'a.pem'`. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message.replace(/^E[A-Z]+: (.*?), \w+(?: '.*')?$/, '$1');
}
