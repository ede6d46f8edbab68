import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Removes what was compiled of sources that are no more, so that it is not run in place of what they became. */
export function removeStale(root) {
  const built = join(root, 'dist');
  for (const file of readdirSync(built, { recursive: true })) {
    const source = file.replace(/\.js(\.map)?$/, '.ts');
    if (source !== file && !existsSync(join(root, source))) rmSync(join(built, file), { force: true });
  }
}
