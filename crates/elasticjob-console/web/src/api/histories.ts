import { useQuery } from "@tanstack/react-query";

import { request } from "./client";

/** Where the history of a registry is kept. */
export interface History {
  registry: string;
  url: string;
  isOpen: boolean;
  problem: string | null;
  isAdded: boolean;
}

export const HISTORIES_KEY = ["histories"] as const;

export const useHistories = () =>
  useQuery({
    queryKey: HISTORIES_KEY,
    queryFn: () => request<History[]>("GET", "/histories"),
    refetchInterval: 15_000,
  });
