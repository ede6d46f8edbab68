import { expect, it } from 'vitest';
import { CertificateAuthority, withoutEnd } from '../../test/conformance/certificates.js';
import { datedCertificates } from './dated-certificates.js';
import { loadConfig } from './load.js';
import { ConfigError } from './problem.js';

const ca = new CertificateAuthority();
const authority = ca.certificate.toString();
const [client, other] = [ca.issue('client'), ca.issue('other')];
const files: Readonly<Record<string, string>> = {
  '/none/ca.pem': authority,
  '/none/token': 'Bearer s3cret%\n',
  '/none/cert.pem': client.certificate.toString(),
  '/none/key.pem': client.key.toString(),
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

const withCertificate = ', tls: {sni: engines.example, certFile: cert.pem, keyFile: key.pem}';

it('a certificate for engines that ask for one comes from files, and is never shown', () => {
  const config = load(withCertificate, withCertificate);
  expect(config.upstreams.get('a')!.tls).toEqual({
    sni: 'engines.example',
    client: { cert: client.certificate.toString(), key: client.key.toString() },
  });
  expect(JSON.stringify([config.shown, config.fleet])).not.toContain('PRIVATE KEY');
});

it('a certificate without its key, a key alone and the key of another certificate are problems with a place', () => {
  const alone = (key: string) => `, tls: {sni: x, ${key}}`;
  const noKey = alone('certFile: cert.pem');
  expect(problems(noKey, noKey)).toMatch(/engines\[0\]\.tls: missing key "keyFile", to go with certFile/);
  const noCertificate = alone('keyFile: key.pem');
  expect(problems(noCertificate, noCertificate)).toMatch(/tls: missing key "certFile", to go with keyFile/);
  const misspelt = alone('certFile: cert.pem, keyFiel: key.pem');
  expect(problems(misspelt, misspelt)).toMatch(/unknown key.*keyFile/s);
  expect(problems(misspelt, misspelt)).not.toMatch(/missing key/);
  const files = { '/none/key.pem': other.key.toString() };
  expect(problems(withCertificate, withCertificate, files)).toMatch(
    /certFile and keyFile cannot be used together/,
  );
});

it('what the control server could use, but Envoys would refuse, is a problem with a place', () => {
  const ofCurve = (curve: string) => {
    const { certificate, key } = ca.issueOf(curve, 'client');
    return { '/none/cert.pem': certificate.toString(), '/none/key.pem': key.toString() };
  };
  expect(problems(withCertificate, withCertificate, ofCurve('P-384'))).toBe('');
  expect(problems(withCertificate, withCertificate, ofCurve('secp256k1'))).toMatch(
    /tls\.certFile: the key must be one that Envoys can use: .*P-256.* \(it is of ec secp256k1\)/,
  );
  const broken = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
  expect(problems(both, both, { '/none/ca.pem': authority + broken })).toMatch(
    /tls\.caFile: Envoys take no file in which a certificate cannot be read \(number 2 of 2: /,
  );
});

it('when certificates are valid is known: of a chain its first, of authorities the last to end, of equal files once', () => {
  const later = new CertificateAuthority(30).certificate.toString();
  const config = load(
    both.replace('}', ', certFile: cert.pem, keyFile: key.pem}'),
    both.replace('}', ', certFile: cert.pem, keyFile: key.pem}'),
    {
      '/none/ca.pem': `${later}# the one before\n${authority}`,
      '/none/cert.pem': `${client.certificate}${later}`,
    },
  );
  expect(config.certificates.map(({ key }) => key)).toEqual([
    'tls.certFile of engine a',
    'tls.caFile of engine a',
  ]);
  const days = config.certificates.map(({ toMs }) => Math.round((toMs - Date.now()) / 86_400_000));
  expect(days).toEqual([1, 30]);
});

it('a certificate whose dates cannot be read is a problem with a place: Envoys refuse its file, and alarms could not tell of it', () => {
  const endless = withoutEnd(ca.certificate).toString();
  expect(problems(both, both, { '/none/ca.pem': authority + endless })).toMatch(
    /tls\.caFile: .*\(number 2 of 2: its dates cannot be read\)/,
  );
  const shown = { '/none/cert.pem': withoutEnd(client.certificate).toString() };
  expect(problems(withCertificate, withCertificate, shown)).toMatch(
    /tls\.certFile: .*\(number 1 of 1: its dates cannot be read\)/,
  );
  const server = { cert: endless, key: '', clientCa: endless + authority };
  expect(datedCertificates(server, new Map()).map(({ key }) => key)).toEqual(['server.tls.clientCa']);
});
