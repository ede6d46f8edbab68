import { expect, it } from 'vitest';
import { CertificateAuthority } from '../../test/conformance/certificates.js';
import { loadConfig } from './load.js';
import { ConfigError } from './problem.js';

const authority = new CertificateAuthority().certificate.toString();
const files: Readonly<Record<string, string>> = {
  '/none/ca.pem': authority,
  '/none/token': 'Bearer s3cret%\n',
};

function load(a: string, b: string, more: Readonly<Record<string, string>> = {}) {
  return loadConfig('/none/fleet.yaml', (path) => {
    if (path !== '/none/fleet.yaml') {
      const text = { ...files, ...more }[path];
      if (text === undefined) throw new Error('ENOENT');
      return text;
    }
    return [
      'frontends: [{id: f, region: r}]',
      'engines:',
      `- {id: a, region: r, models: [m], endpoints: ["10.0.0.1:443"]${a}}`,
      `- {id: b, region: r, models: [m], endpoints: ["10.0.0.2:443"]${b}}`,
      'profiles: {p: {requestsPerSecond: 1}}',
    ].join('\n');
  });
}

function problems(a: string, b: string, more: Readonly<Record<string, string>> = {}): string {
  try {
    load(a, b, more);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

const both = ', tls: {sni: engines.example, caFile: ca.pem}, auth: {valueFile: token}';

it('engines speak plain HTTP unless told otherwise', () => {
  expect(load('', '').upstreams.size).toBe(0);
});

it('authorities and the value of the header come from files, and are never shown', () => {
  const config = load(both, both);
  expect(config.upstreams.get('a')).toEqual({
    tls: { sni: 'engines.example', ca: authority },
    auth: { header: 'authorization', value: 'Bearer s3cret%' },
  });
  expect(JSON.stringify([config.shown, config.fleet])).not.toContain('s3cret');
});

it('engines that share a model must agree', () => {
  expect(problems(both, '')).toMatch(/tls and auth differ from those of engine "a", which serves "m"/);
});

it('a missing file, one that is no certificate and a value of several lines are problems with a place', () => {
  const other = ', tls: {sni: x, caFile: other.pem}';
  expect(problems(other, other)).toMatch(/other\.pem cannot be read/);
  const broken = { '/none/ca.pem': '-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n' };
  expect(problems(both, both, broken)).toMatch(/must hold a certificate in PEM/);
  expect(problems(both, both, { '/none/token': 'a\nb' })).toMatch(/one line of printable characters/);
});
