// Generates xds-server/gen: TypeScript for the part of Envoy's API that Wardrop speaks. The protos come from the npm
// package @grpc/grpc-js-xds, which is older than the Envoy that we target; scripts/envoy-api.json lists the files
// that we want and the fields that they lack. Needs node_modules and nothing else. Does nothing when its inputs have
// not changed.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const outDir = path.join(root, 'xds-server', 'gen');
const stampFile = path.join(outDir, '.inputs');
const tableFile = path.join(root, 'scripts', 'envoy-api.json');
const modules = path.join(root, 'node_modules');
const protoRoots = ['envoy-api', 'xds', 'googleapis'].map((name) =>
  path.join(modules, '@grpc', 'grpc-js-xds', 'deps', name),
);
const inputPackages = ['@grpc/grpc-js-xds', '@bufbuild/buf', '@bufbuild/protobuf', '@bufbuild/protoc-gen-es'];
/** Imports that only define custom options; all custom options are dropped, so these are too. */
const optionImports =
  /^(validate\/|udpa\/annotations\/|xds\/annotations\/|envoy\/annotations\/|google\/api\/annotations)/;

/**
 * Removes comments and every custom option (`(validate.rules)` and kin) from a proto file. The validation rules in
 * the npm tree contradict each other's versions, so that strict compilers refuse them, and a control server must not
 * enforce them anyway: its clients may be of another version.
 */
export function stripCustomOptions(source) {
  const tokens =
    source
      .replace(/\r\n/g, '\n')
      .match(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\s+|[\w.]+|[\s\S]/g) ?? [];
  const code = tokens.filter((token) => !token.startsWith('//') && !token.startsWith('/*'));
  let out = '';
  for (let i = 0; i < code.length; i++) {
    if (code[i] === 'option' && nextSolid(code, i) === '(') {
      i = indexOfTopLevel(code, i, ';');
    } else if (code[i] === 'import' && optionImports.test(nextSolid(code, i).slice(1))) {
      i = indexOfTopLevel(code, i, ';');
    } else if (code[i] === '[') {
      const end = indexOfTopLevel(code, i + 1, ']');
      const kept = splitTopLevel(code.slice(i + 1, end)).filter((option) => !option.startsWith('('));
      if (kept.length > 0) out += `[${kept.join(', ')}]`;
      i = end;
    } else {
      out += code[i];
    }
  }
  return out;
}

function nextSolid(tokens, from) {
  let i = from + 1;
  while (i < tokens.length && tokens[i].trim() === '') i++;
  return tokens[i] ?? '';
}

/** Index of `wanted` outside all brackets opened after `from`. */
function indexOfTopLevel(tokens, from, wanted) {
  let depth = 0;
  for (let i = from; i < tokens.length; i++) {
    if (depth === 0 && tokens[i] === wanted) return i;
    if ('([{'.includes(tokens[i])) depth++;
    else if (')]}'.includes(tokens[i])) depth--;
  }
  throw new Error(`proto source ends before ${wanted}`);
}

function splitTopLevel(tokens) {
  const parts = [];
  let rest = tokens;
  while (rest.length > 0) {
    const comma = indexOfTopLevel([...rest, ','], 0, ',');
    parts.push(rest.slice(0, comma).join('').trim());
    rest = rest.slice(comma + 1);
  }
  return parts;
}

/** Writes the wanted files and everything they import, stripped, under `dir`. */
function collectProtos(files, dir) {
  const seen = new Set();
  const queue = [...files];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file) || file.startsWith('google/protobuf/')) continue;
    seen.add(file);
    const from = protoRoots
      .map((protoRoot) => path.join(protoRoot, file))
      .find((name) => fs.existsSync(name));
    if (from === undefined) throw new Error(`${file} is not in the npm proto tree`);
    const source = stripCustomOptions(fs.readFileSync(from, 'utf8'));
    const target = path.join(dir, file);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, source);
    for (const match of source.matchAll(/^import (?:public )?"([^"]+)";/gm)) queue.push(match[1]);
  }
}

/** Adds the table's files, enums, messages and fields to a descriptor set. */
export function applyAdditions(set, table) {
  for (const file of table.newFiles) {
    set.file.push(
      create(FileDescriptorProtoSchema, { name: file.name, package: file.package, syntax: 'proto3' }),
    );
  }
  const files = new Map(set.file.map((file) => [file.name, file]));
  const types = new Map();
  for (const file of set.file) indexTypes(file, types);

  const addType = (kind, { file: fileName, name }, descriptor) => {
    const file = files.get(fileName);
    if (file === undefined) throw new Error(`${name}: no file ${fileName}`);
    if (types.has(name)) throw new Error(`${name} is already in the npm proto tree`);
    const parent = types.get(name.slice(0, name.lastIndexOf('.')));
    (parent === undefined ? file[kind] : parent.descriptor.nestedType).push(descriptor);
    types.set(name, { file, descriptor });
  };
  for (const row of table.enums) {
    const value = Object.entries(row.values).map(([name, number]) => ({ name, number }));
    addType('enumType', row, create(EnumDescriptorProtoSchema, { name: shortName(row.name), value }));
  }
  for (const row of table.messages) {
    addType('messageType', row, create(DescriptorProtoSchema, { name: shortName(row.name) }));
  }
  for (const row of table.fields) addField(row, types);
}

function addField(row, types) {
  const where = `${row.message}.${row.field}`;
  const { file, descriptor } = types.get(row.message) ?? {};
  if (descriptor === undefined) throw new Error(`${where}: unknown message`);
  if (descriptor.field.some((field) => field.name === row.field || field.number === row.number)) {
    throw new Error(`${where}: the name or number ${row.number} is already in the npm proto tree`);
  }
  const words = row.type.split(' ');
  const label = words[0] === 'repeated' ? Label.REPEATED : Label.OPTIONAL;
  if (label === Label.REPEATED) words.shift();
  const isEnum = words[0] === 'enum';
  if (isEnum) words.shift();
  const scalar = words[0].includes('.') ? undefined : Type[words[0].toUpperCase()];
  const field = create(FieldDescriptorProtoSchema, { name: row.field, number: row.number, label });
  field.jsonName = row.field.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  if (scalar !== undefined) {
    field.type = scalar;
  } else {
    const target = types.get(words[0]);
    if (target === undefined) throw new Error(`${where}: unknown type ${words[0]}`);
    field.type = isEnum ? Type.ENUM : Type.MESSAGE;
    field.typeName = `.${words[0]}`;
    if (target.file !== file && !file.dependency.includes(target.file.name)) {
      file.dependency.push(target.file.name);
    }
  }
  descriptor.field.push(field);
}

function shortName(fullName) {
  return fullName.slice(fullName.lastIndexOf('.') + 1);
}

function indexTypes(file, types) {
  const visit = (prefix, descriptors) => {
    for (const descriptor of descriptors) {
      const name = `${prefix}.${descriptor.name}`;
      types.set(name, { file, descriptor });
      if (descriptor.nestedType !== undefined) visit(name, descriptor.nestedType);
    }
  };
  visit(file.package, [...file.messageType, ...file.enumType]);
}

/** A file must come after those it imports. */
function sortByImports(files) {
  const byName = new Map(files.map((file) => [file.name, file]));
  const sorted = new Set();
  const visit = (file) => {
    for (const name of file.dependency) {
      const imported = byName.get(name);
      if (imported !== undefined && !sorted.has(imported)) visit(imported);
    }
    sorted.add(file);
  };
  for (const file of files) visit(file);
  return [...sorted];
}

function inputsHash() {
  const hash = createHash('sha256');
  hash.update(fs.readFileSync(fileURLToPath(import.meta.url)));
  hash.update(fs.readFileSync(tableFile));
  for (const name of inputPackages) {
    const manifest = JSON.parse(fs.readFileSync(path.join(modules, name, 'package.json'), 'utf8'));
    hash.update(`${name}@${manifest.version}\n`);
  }
  return hash.digest('hex');
}

function buf(args, cwd) {
  execFileSync(process.execPath, [path.join(modules, '@bufbuild', 'buf', 'bin', 'buf'), ...args], {
    cwd,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, BUF_CACHE_DIR: path.join(cwd, 'cache') },
  });
}

/** Generates xds-server/gen unless it is up to date; true when it wrote. */
export function generateProtos() {
  const inputs = inputsHash();
  if (fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === inputs) return false;
  const table = JSON.parse(fs.readFileSync(tableFile, 'utf8'));
  // Beside the target, so that the finished folder can be moved into place in one step.
  const work = fs.mkdtempSync(path.join(modules, '.wardrop-protos-'));
  try {
    collectProtos(table.files, path.join(work, 'protos'));
    fs.writeFileSync(
      path.join(work, 'buf.yaml'),
      JSON.stringify({ version: 'v2', modules: [{ path: 'protos' }] }),
    );
    buf(['build', '--exclude-source-info', '-o', 'npm.binpb'], work);

    const set = fromBinary(FileDescriptorSetSchema, fs.readFileSync(path.join(work, 'npm.binpb')));
    applyAdditions(set, table);
    set.file = sortByImports(set.file);
    fs.writeFileSync(path.join(work, 'envoy.binpb'), toBinary(FileDescriptorSetSchema, set));

    const plugin = {
      local: [process.execPath, path.join(modules, '@bufbuild', 'protoc-gen-es', 'bin', 'protoc-gen-es')],
      out: 'gen',
      opt: ['target=ts', 'import_extension=js'],
      strategy: 'all',
    };
    fs.writeFileSync(path.join(work, 'buf.gen.yaml'), JSON.stringify({ version: 'v2', plugins: [plugin] }));
    buf(['generate', 'envoy.binpb'], work);
    fs.writeFileSync(path.join(work, 'gen', '.inputs'), inputs);
    fs.rmSync(outDir, { recursive: true, force: true });
    fs.renameSync(path.join(work, 'gen'), outDir);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
  return true;
}

if (
  process.argv[1] !== undefined &&
  import.meta.url === pathToFileURL(fs.realpathSync(process.argv[1])).href
) {
  console.log(generateProtos() ? 'generated xds-server/gen' : 'xds-server/gen is up to date');
}
