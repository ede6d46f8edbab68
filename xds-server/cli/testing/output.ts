import { resolve } from 'node:path';
import { afterEach, beforeEach, vi } from 'vitest';
import { CONTROL_HEADER } from '../../admin/control-header.js';

/** Path of a configuration that tests share. */
export const fixture = (name: string) => resolve(import.meta.dirname, '../../config/testdata', name);

/** What a test's commands print, in place of the console. */
export function output(): { out: string; err: string } {
  const told = { out: '', err: '' };
  beforeEach(() => {
    told.out = '';
    told.err = '';
    vi.spyOn(console, 'log').mockImplementation((text) => {
      told.out += `${text}\n`;
    });
    vi.spyOn(console, 'error').mockImplementation((text) => {
      told.err += `${text}\n`;
    });
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      told.out += text;
      return true;
    });
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      told.err += text;
      return true;
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  return told;
}

/** What a control server says. */
export function answerOf(body: object): Response {
  return Response.json(body, { headers: { [CONTROL_HEADER]: '1' } });
}
