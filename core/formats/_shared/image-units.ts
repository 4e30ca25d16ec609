import type { Units } from '../../model/usage.ts';

/** Returns so many images, by their quality and size where these are named: `high/1024x1536`, `high`, `1024x1536`. */
export function imageUnits(images: number, quality: string | undefined, size: string | undefined): Units {
  const name = [quality, size]
    .filter((word) => word !== undefined && word !== '' && word !== 'auto')
    .join('/');
  return name === '' ? { images } : { images, imagesAt: { [name.slice(0, 100)]: images } };
}
