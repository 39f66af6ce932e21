// Runs npm's `@sigstore/verify` over the cases of a file and compares its verdict with ours.
// usage: node run.mjs CASES KNOWN
import { readFileSync } from 'node:fs';
import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';

const [casesFile, knownFile] = process.argv.slice(2);
const cases = readFileSync(casesFile, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const known = new Map(
  readFileSync(knownFile, 'utf8')
    .split('\n')
    .filter((line) => line.trim() && !line.startsWith('#'))
    .map((line) => line.split(' | ').map((part) => part.trim()))
    .map(([name, verdict, reason]) => [name, { verdict, reason }]),
);
// The package takes the name as a regular expression and searches with it.
const literal = (text) => `^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;

function theirs({ bundle, root, artifact, identity, issuer }) {
  try {
    const parsed = bundleFromJSON(bundle);
    const material = toTrustMaterial(TrustedRoot.fromJSON(root));
    const verifier = new Verifier(material, { tlogThreshold: 1, ctlogThreshold: 1 });
    const entity = toSignedEntity(parsed, Buffer.from(artifact, 'base64'));
    verifier.verify(entity, {
      subjectAlternativeName: literal(identity),
      extensions: { issuer },
    });
    return 'ok';
  } catch (error) {
    return `refused (${error.code ?? error.name}: ${String(error.message).split('\n')[0]})`;
  }
}

const counts = { 'both accept': 0, 'both refuse': 0, 'known difference': 0 };
const unexpected = [];
const used = new Set();
for (const item of cases) {
  const found = theirs(item);
  const ours = item.ours === 'ok';
  const agrees = ours === (found === 'ok');
  const line = `${item.name}: ours ${item.ours}, theirs ${found}`;
  const expected = known.get(item.name);
  if (agrees && !expected) {
    counts[ours ? 'both accept' : 'both refuse'] += 1;
  } else if (!agrees && expected && expected.verdict === `ours ${item.ours}`) {
    counts['known difference'] += 1;
    used.add(item.name);
  } else {
    unexpected.push(agrees ? `${line} (no longer a difference)` : line);
  }
}
for (const name of known.keys()) {
  if (!used.has(name) && !unexpected.some((line) => line.startsWith(`${name}:`))) {
    unexpected.push(`${name}: known, and there is no such case`);
  }
}
console.log(`${cases.length} cases: ${Object.entries(counts).map(([what, n]) => `${n} ${what}`).join(', ')}`);
for (const line of unexpected) console.log(`difference: ${line}`);
process.exit(unexpected.length === 0 ? 0 : 1);
