import { componentize } from '@bytecodealliance/componentize-js';
import { readFile, writeFile } from 'node:fs/promises';
const [source, wit, output] = process.argv.slice(2);
const { component } = await componentize(await readFile(source, 'utf8'), {
  witPath: wit, worldName: 'wasi:http/proxy', sourceName: source,
});
await writeFile(output, component);
