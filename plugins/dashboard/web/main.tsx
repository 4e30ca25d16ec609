/** Starts the dashboard in the browser. */
import { MutationCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { ApiError } from './parts/api.ts';
import { startTheme } from './parts/theme.ts';
import { say, Toasts } from './parts/toasts.tsx';

startTheme();

const queries = new QueryClient({
  defaultOptions: {
    // Whether the machine has a network says nothing about the gateway, which may run on it.
    // What was sent is forgotten at once: passwords, keys, tokens and codes are among it.
    mutations: { networkMode: 'always', gcTime: 0 },
    queries: {
      networkMode: 'always',
      staleTime: 5_000,
      // What was refused stays refused; a gateway that restarts comes back.
      retry: (count, error) =>
        count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
  mutationCache: new MutationCache({
    onError(error, _variables, _context, mutation) {
      if (mutation.meta?.['quiet'] !== true) say(error.message, 'bad');
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
