/** A second process at a store, for tests: `race PLACE NAME COUNT` creates keys and prints which it made, `put PLACE MEGABYTES` writes until it is killed. */
import { openObjectStore } from '../open.ts';

const [what, place = '{}', how = '', count] = process.argv.slice(2);
const store = await openObjectStore({ blobStore: JSON.parse(place) });

if (what === 'race') {
  const won: number[] = [];
  await Promise.all(
    Array.from({ length: Number(count) }, async (_, i) => {
      if (await store.create(`race/${i}`, new TextEncoder().encode(how))) won.push(i);
    }),
  );
  console.log(JSON.stringify(won));
} else {
  const bytes = new Uint8Array(Number(how) << 20).fill(7);
  for (let i = 0; ; i++) {
    await store.put(`put/${i}`, bytes);
    if (i === 0) console.log('one is there');
  }
}
