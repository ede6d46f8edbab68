import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CertificateAuthority } from '../../../test/conformance/certificates.js';
import { run } from '../run.js';
import { fixture, output } from '../testing/output.js';

const told = output();

describe('wardrop bootstrap', () => {
  it('prints YAML or JSON that names frontend, node and addresses', async () => {
    const args = ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'west', '--node-id', 'n1'];
    expect(await run(args)).toBe(0);
    const yaml = parse(told.out) as object;
    told.out = '';
    expect(await run([...args, '--format', 'json'])).toBe(0);
    expect(JSON.parse(told.out)).toEqual(yaml);
    expect(yaml).toMatchObject({
      node: {
        id: 'n1',
        cluster: 'west',
        locality: { region: 'west' },
        metadata: { wardrop: { frontend: 'west' } },
      },
    });
    expect(JSON.stringify(yaml)).toContain('"port_value":18000');
    expect(JSON.stringify(yaml)).toContain('"port_value":18001');
  });

  it('refuses a node id that sync would refuse', async () => {
    const args = ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'west', '--node-id'];
    for (const id of ['', 'my node', 'nö', 'n'.repeat(257)]) {
      expect(await run([...args, id])).toBe(2);
      expect(told.err).toContain(`--node-id: ${JSON.stringify(id)} is no name`);
    }
    expect(await run([...args, 'n'.repeat(256)])).toBe(0);
  });

  it('asks for what only the operator knows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-cli-'));
    const file = join(folder, 'fleet.yaml');
    const authority = new CertificateAuthority();
    const { certificate, key } = authority.issue('127.0.0.1');
    writeFileSync(join(folder, 'cert.pem'), certificate);
    writeFileSync(join(folder, 'key.pem'), key);
    writeFileSync(join(folder, 'ca.pem'), authority.certificate);
    const text = (server: string) =>
      `server: {${server}}\nfrontends: [{id: f, region: r}]\nengines: [{id: e, region: r, models: [m], endpoints: [127.0.0.1:1]}]\n`;
    const bootstrap = (...args: string[]) => run(['bootstrap', '-c', file, '--frontend', 'f', ...args]);
    try {
      writeFileSync(file, text('xds: {listen: 0.0.0.0:1}, token: 0123456789abcdef'));
      expect(await bootstrap()).toBe(2);
      expect(told.err).toContain('give --control');
      expect(await bootstrap('--control', 'control.example')).toBe(0);
      expect(told.out).toContain('Bearer 0123456789abcdef');

      const peers = '[{xds: "two:1", sync: "two:2"}, {xds: "three:1", sync: "three:2"}]';
      writeFileSync(file, text(`xds: {listen: 0.0.0.0:1}, sync: {listen: 0.0.0.0:2}, peers: ${peers}`));
      const servers = () => told.out.match(/(?<= {2}address: )\w+$/gm);
      expect(await bootstrap()).toBe(0);
      expect(servers()).toEqual(['two', 'three', 'two', 'three']);
      told.out = '';
      expect(await bootstrap('--control', 'three')).toBe(0);
      expect(servers()).toEqual(['three', 'two', 'three', 'two']);

      writeFileSync(file, text('tls: {cert: cert.pem, key: key.pem, clientCa: ca.pem}'));
      expect(await bootstrap()).toBe(2);
      expect(told.err).toContain('give --ca');
      expect(await bootstrap('--ca', '/ca.pem')).toBe(2);
      expect(told.err).toContain('give --client-cert and --client-key');
      expect(await bootstrap('--ca', '/ca.pem', '--client-cert', '/c.pem')).toBe(2);
      expect(told.err).toContain('--client-cert and --client-key belong together');
      expect(await bootstrap('--ca', '/ca.pem', '--client-cert', '/c.pem', '--client-key', '/k.pem')).toBe(0);
      expect(told.out).toContain('filename: /ca.pem');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
