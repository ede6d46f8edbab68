import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../load.js';
import { fixture, minimal, problemsOf } from '../testing/texts.js';

describe('the YAML of a configuration', () => {
  it('says where YAML is broken', () => {
    expect(() => loadConfig(fixture('reload-2-broken.txt'))).toThrowError(/reload-2-broken\.txt:6:\d+: /);
  });

  it.each([
    ['a bracket', 'a: {b: [1, 2\nc: 1\n', '2:1', 'Flow sequence', 'line 1, column 8'],
    ['a quote', 'a: {b: [1, "2]}\nc: 1\n', '3:1', 'Missing closing "quote', 'line 1, column 12'],
    ['the end of a half-written file', '[{"a": {"b": 1', '1:15', 'Flow map', 'line 1, column 8'],
  ])('tells once that %s is missing, and what it would close', (_, text, place, what, begin) => {
    const problems = problemsOf(text);
    expect(problems.map(({ line, column }) => `${line}:${column}`)).toEqual([place]);
    expect(problems[0]!.message).toContain(what);
    expect(problems[0]!.hint).toBe(`it begins in ${begin}`);
  });

  it('follows YAML aliases', () => {
    const text = minimal.replace('[{id: f, region: n}]', '[{id: f, region: n}, {id: g, region: n}]');
    expect(problemsOf(`${text}network: {rttMs: {f: &row {e: 1}, g: *row}}`)).toEqual([]);
  });

  it('refuses every key that its mapping has before, in a block or in brackets, as it is written', () => {
    const text = `a: 1\nb: {c: 1, "c": 2, d: 1, c: 3}\n'a': 2\ne: [{1.0: x, 1.0: y}]\n`;
    expect(problemsOf(text).map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual([
      '3:1 key "a" is already in line 1',
      '2:11 key "c" is already in line 2',
      '2:25 key "c" is already in line 2',
      '4:14 key "1.0" is already in line 4',
    ]);
  });

  it('takes an alias of a name for a key, as it is written there, and refuses it where the mapping has it before', () => {
    const text = minimal.replace('profile: p', 'profile: &x "1.10"').replace('{p: {', '{*x : {');
    expect(text).toContain('{*x : {');
    expect(problemsOf(text)).toEqual([]);
    const [unknown] = problemsOf(`${text}policy: {*x : 1}\n`);
    expect(unknown).toMatchObject({ line: 5, column: 10, message: 'unknown key' });
    const [twice] = problemsOf(text.replace('{*x : {', '{1.10: {requestsPerSecond: 2}, *x : {'));
    expect(twice).toMatchObject({ line: 4, message: 'key "1.10" is already in line 4' });
  });

  it('tells of keys twice only when nothing is misread', () => {
    expect(problemsOf('a: {b: 1, b: 2\nc: 1\n').map(({ message }) => message)).toEqual([
      expect.stringContaining('Flow map'),
    ]);
  });

  it('refuses aliases without an anchor, each at its place', () => {
    const text = `${minimal}policy: *none\ntimeouts: {answerSeconds: *nothing}\n`;
    expect(problemsOf(text).map(({ line, column, message }) => ({ line, column, message }))).toEqual([
      { line: 5, column: 9, message: 'there is no anchor &none before the alias *none' },
      { line: 6, column: 27, message: 'there is no anchor &nothing before the alias *nothing' },
    ]);
  });

  it('refuses tags, which mean something to other programs only', () => {
    const [problem] = problemsOf(minimal.replace('id: e', 'id: !env ENGINE'));
    expect(problem).toMatchObject({ line: 3, column: 16, message: 'Unresolved tag: !env' });
  });

  it('knows what other YAML calls true, and merging of mappings', () => {
    const problems = problemsOf(`${minimal}filter: {readBodies: off}\nneeds: {<<: {}}\nserver: {<<: {}}\n`);
    expect(problems.map(({ hint }) => hint)).toEqual(
      expect.arrayContaining(['write false', 'mappings are not merged; write the keys out']),
    );
  });

  it('refuses what would exhaust memory or stack', () => {
    const doubled = Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`).join('\n');
    expect(problemsOf(`a0: &a0 [x]\n${doubled}\n`).map(({ message }) => message)).toEqual([
      'aliases of aliases multiply beyond measure',
    ]);
    expect(problemsOf(`a: ${'['.repeat(20_000)}`).map(({ message }) => message)).toContain(
      'values are nested too deeply',
    );
  });

  it('refuses a file that is longer than any configuration, without taking it apart', () => {
    const text = `${minimal}#${' '.repeat(8 * 1024 * 1024)}\n`;
    expect(problemsOf(text).map(({ message }) => message)).toEqual([
      'cannot be read: it has more than 8388608 characters, as no configuration has',
    ]);
  });

  it('reads UTF-8, with a byte order mark or without, and refuses what is none', () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-yaml-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'fleet.yaml');
    writeFileSync(file, `\ufeff${minimal}`);
    expect(loadConfig(file).fleet.frontends).toHaveLength(1);
    for (const encoding of ['latin1', 'utf16le'] as const) {
      writeFileSync(file, Buffer.from(minimal.replace('region: n', 'region: é'), encoding));
      expect(() => loadConfig(file)).toThrow('cannot be read: it is not UTF-8 text');
    }
  });
});
