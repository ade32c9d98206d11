import { z } from 'zod';

export type PageOptions = { readonly limit?: number; readonly offset?: number };

/** `totalCount`: of all pages; null when the service does not say. */
export type Page<Item> = { readonly items: readonly Item[]; readonly totalCount: number | null };

export const cursorSchema = z
  .object({ offset: z.number().nullish(), limit: z.number().nullish(), total_count: z.number().nullish() })
  .nullish();

/** Every item of every page, fetched as they are asked for. An item that moves between pages meanwhile may be missed or come twice. */
export async function* everyPage<Item>(
  limit: number,
  fetch: (options: Required<PageOptions>) => Promise<Page<Item>>,
): AsyncGenerator<Item> {
  for (let offset = 0; ; ) {
    const { items, totalCount } = await fetch({ limit, offset });
    yield* items;
    offset += items.length;
    const isLast = totalCount === null ? items.length < limit : offset >= totalCount;
    if (items.length === 0 || isLast) return;
  }
}
