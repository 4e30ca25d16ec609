/** Starts the dashboard in the browser. */
import { MutationCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { ApiError } from './parts/api.ts';
import { startTheme } from './parts/theme.ts';
import { showToast, Toasts } from './parts/toasts.tsx';

startTheme();

const queries = new QueryClient({
  defaultOptions: {
    // Requests are sent also when the browser is offline, because the gateway may run on the same machine. Sent data is dropped at once,
    // because it includes passwords, keys, tokens and codes.
    mutations: { networkMode: 'always', gcTime: 0 },
    queries: {
      networkMode: 'always',
      staleTime: 5_000,
      // Retries other errors than 4xx, because a restarting gateway comes back.
      retry: (count, error) =>
        count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
  mutationCache: new MutationCache({
    onError(error, _variables, _context, mutation) {
      if (mutation.meta?.['quiet'] !== true) showToast(error.message, 'bad');
    },
  }),
});

const place = document.querySelector('#page');
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
        <Toasts />
      </QueryClientProvider>
    </StrictMode>,
  );
}
