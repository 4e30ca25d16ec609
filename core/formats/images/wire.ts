/** The name under which this format keeps what only it knows. */
export const formatName = 'images';

/** Below a provider's base URL. */
export const paths = {
  'generate-image': '/images/generations',
  'edit-image': '/images/edits',
  'vary-image': '/images/variations',
} as const;

/** Kind of request. */
export type ImageOperation = keyof typeof paths;

/** Prefix of the event names of a stream. */
export const eventNames = {
  'generate-image': 'image_generation',
  'edit-image': 'image_edit',
  'vary-image': 'image_edit',
} as const satisfies Record<ImageOperation, string>;
