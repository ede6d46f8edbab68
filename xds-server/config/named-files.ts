import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { parseReplicaList } from '../fleet/replica-list.js';
import type { CertifiedKey, Upstream, UpstreamAuth, UpstreamTls } from '../fleet/upstream.js';
import { messageOf } from '../message-of.js';
import { checkAll, checkShown } from './certificates.js';
import type { TlsSettings } from './config.js';
import type { ReadFile } from './document/read-file.js';
import { variableHint } from './document/variables.js';
import type { YamlSource } from './document/yaml-source.js';
import { type NetworkTable, parseNetworkTable } from './network-table.js';
import type { ConfigProblem, Path } from './problem.js';
import type { ConfigFile } from './schema/schema.js';
import type { Partly } from './schema/schema-type.js';

export interface Secrets {
  readonly token?: string;
  readonly tls?: TlsSettings;
}

/** The files that a configuration names, relative to itself. */
export class NamedFiles {
  readonly problems: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  readonly #source: YamlSource;
  readonly #readFile: ReadFile;

  constructor(source: YamlSource, readFile: ReadFile) {
    this.#source = source;
    this.#readFile = readFile;
  }

  readTable(config: Partly<ConfigFile>): NetworkTable | undefined {
    const file = config.network?.table;
    const text = this.#text(['network', 'table'], file);
    if (file === undefined || text === undefined) return undefined;
    const result = parseNetworkTable(text, file);
    if ('table' in result) return result.table;
    // They may be more than a call takes.
    for (const problem of result.problems) this.problems.push(problem);
    return undefined;
  }

  readSecrets({ server }: Partly<ConfigFile>): Secrets {
    const tokenPath = ['server', 'tokenFile'];
    const token = server?.token ?? this.#text(tokenPath, server?.tokenFile)?.trim();
    if (server?.token === undefined && token !== undefined && !/^[\x21-\x7e]{16,}$/.test(token)) {
      this.problems.push(
        this.#source.problem(tokenPath, 'the file must hold at least 16 printable characters without spaces'),
      );
    }
    if (server?.token === undefined) this.#checkVariable(tokenPath, token);
    const cert = this.#text(['server', 'tls', 'cert'], server?.tls?.cert);
    const key = this.#text(['server', 'tls', 'key'], server?.tls?.key);
    const clientCa = this.#text(['server', 'tls', 'clientCa'], server?.tls?.clientCa);
    const peerCa = this.#text(['server', 'tls', 'peerCa'], server?.tls?.peerCa);
    if (cert === undefined || key === undefined) return token === undefined ? {} : { token };
    const authorities = {
      ...(clientCa !== undefined && { clientCa }),
      ...(peerCa !== undefined && { peerCa }),
    };
    const tls = { cert, key, ...authorities };
    this.#checkTls(tls);
    return { ...(token === undefined ? {} : { token }), tls };
  }

  /** How engines are spoken to, by their id. */
  readUpstreams({ engines }: Partly<ConfigFile>): ReadonlyMap<string, Upstream> {
    const upstreams = new Map<string, Upstream>();
    for (const [index, engine] of (engines ?? []).entries()) {
      if (engine?.id === undefined) continue;
      const tls = this.#upstreamTls(['engines', index, 'tls'], engine.tls);
      const auth = this.#upstreamAuth(['engines', index, 'auth', 'valueFile'], engine.auth);
      if (tls === undefined && auth === undefined) continue;
      upstreams.set(engine.id, { ...(tls && { tls }), ...(auth && { auth }) });
    }
    return upstreams;
  }

  #upstreamTls(path: Path, tls: Partly<ConfigFile['engines'][number]['tls']>): UpstreamTls | undefined {
    if (tls?.sni === undefined) return undefined;
    const ca = this.#text([...path, 'caFile'], tls.caFile);
    const cert = this.#text([...path, 'certFile'], tls.certFile);
    const key = this.#text([...path, 'keyFile'], tls.keyFile);
    const client = cert === undefined || key === undefined ? undefined : { cert, key };
    if (ca !== undefined) this.#checkEngineAuthorities([...path, 'caFile'], ca);
    if (client !== undefined) this.#checkClient(path, client);
    return { sni: tls.sni, ...(ca !== undefined && { ca }), ...(client && { client }) };
  }

  #upstreamAuth(path: Path, auth: Partly<ConfigFile['engines'][number]['auth']>): UpstreamAuth | undefined {
    const value = this.#text(path, auth?.valueFile)?.trim();
    if (auth?.header === undefined || value === undefined) return undefined;
    if (!/^[\x20-\x7e]+$/.test(value)) {
      this.problems.push(this.#source.problem(path, 'the file must hold one line of printable characters'));
    }
    this.#checkVariable(path, value);
    return { header: auth.header.toLowerCase(), value };
  }

  /** A secret is what a file holds, never what a variable would. */
  #checkVariable(path: Path, secret: string | undefined): void {
    const hint = variableHint(secret);
    if (hint !== undefined) {
      this.problems.push(this.#source.problem(path, 'the file holds a variable', { hint }));
    }
  }

  /** Files of replicas may come later, and are read again all the time: what is wrong with one is a warning. */
  readReplicaFiles({ engines }: Partly<ConfigFile>, readFile: ReadFile): void {
    for (const [index, engine] of (engines ?? []).entries()) {
      const file = engine?.discovery?.file;
      if (file === undefined) continue;
      const absolute = resolve(dirname(this.#source.file), file);
      try {
        const replicas = parseReplicaList(readFile(absolute), file);
        if (replicas.length === 0) throw new Error(`${file} is empty`);
      } catch (error) {
        const path = ['engines', index, 'discovery', 'file'];
        const message = `no replicas are found yet: ${messageOf(error)}`;
        this.warnings.push(this.#source.problem(path, message, { hint: `looked for in ${absolute}` }));
      }
    }
  }

  #checkTls({ cert, key, clientCa, peerCa }: TlsSettings): void {
    const tls = ['server', 'tls'];
    this.#checkPair(tls, { cert, key }, ['cert', 'key']);
    // TLS itself would take anything for authorities, and then nobody's certificate.
    if (clientCa !== undefined) this.#checkCertificate([...tls, 'clientCa'], clientCa);
    if (peerCa !== undefined) this.#checkCertificate([...tls, 'peerCa'], peerCa);
  }

  #checkEngineAuthorities(path: Path, pem: string): void {
    if (this.#checkCertificate(path, pem)) this.#checkForEnvoys(path, pem);
  }

  #checkClient(path: Path, client: CertifiedKey): void {
    if (!this.#checkPair(path, client, ['certFile', 'keyFile'])) return;
    if (!this.#checkForEnvoys([...path, 'certFile'], client.cert)) return;
    const keys = 'RSA of at least 2048 bits, EC P-256, P-384 or P-521, or Ed25519';
    this.#check([...path, 'certFile'], `the key must be one that Envoys can use: ${keys}`, () =>
      checkShown(client.cert),
    );
  }

  #checkForEnvoys(path: Path, pem: string): boolean {
    return this.#check(path, 'Envoys take no file in which a certificate cannot be read', () =>
      checkAll(pem),
    );
  }

  /** `keys` are those of the mapping at `path` that name the two files. */
  #checkPair(path: Path, { cert, key }: CertifiedKey, [certKey, keyKey]: readonly [string, string]): boolean {
    const noKey = 'the file must hold a private key in PEM, without a password';
    const isCertificate = this.#checkCertificate([...path, certKey], cert);
    const isKey = this.#check([...path, keyKey], noKey, () => createPrivateKey(key));
    if (!isCertificate || !isKey) return false;
    return this.#check(path, `${certKey} and ${keyKey} cannot be used together`, () =>
      createSecureContext({ cert, key }),
    );
  }

  #checkCertificate(path: Path, pem: string): boolean {
    return this.#check(path, 'the file must hold a certificate in PEM', () => new X509Certificate(pem));
  }

  /** Whether `use` works; what it throws is a problem. */
  #check(path: Path, problem: string, use: () => unknown): boolean {
    try {
      use();
      return true;
    } catch (error) {
      this.problems.push(this.#source.problem(path, `${problem} (${messageOf(error)})`));
      return false;
    }
  }

  #text(path: Path, file: string | undefined): string | undefined {
    if (file === undefined) return undefined;
    const absolute = resolve(dirname(this.#source.file), file);
    try {
      return this.#readFile(absolute);
    } catch (error) {
      const hint = variableHint(file) ?? (file.includes('\\') ? 'write paths with /, not \\' : undefined);
      const message = `${absolute} cannot be read: ${messageOf(error)}`;
      this.problems.push(this.#source.problem(path, message, { hint }));
      return undefined;
    }
  }
}
