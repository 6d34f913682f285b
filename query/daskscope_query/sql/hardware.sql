-- reads: computations, groups, exceptions, members, catalog
-- Computations of one code by the machines that they ran on, fastest first. Machines are those of the workers that were
-- there while one ran, and only computations with tasks of their own that have ended count; `n_workers` is how many there were at a time, on
-- the average, so that ten one after another are one; `thread_s` is as long as their threads were there.
-- A computation's dollars are the cluster's, by its share of the threads' time.
WITH mine AS (
    SELECT cluster, boot, no, start_at, stop_at, greatest(epoch_ms(stop_at) - epoch_ms(start_at), 0) AS duration_ms
    FROM computations
    WHERE list_contains($clusters::VARCHAR[], cluster)
      AND fingerprint(code) = $fingerprint
      AND stop_at IS NOT NULL
      AND ($since::TIMESTAMPTZ IS NULL OR start_at >= $since)
      AND ($until::TIMESTAMPTZ IS NULL OR start_at <= $until)
),
workers AS (
    SELECT
        a.cluster,
        a.boot,
        a.no,
        m.* EXCLUDE (cluster, boot, no),
        greatest(
            epoch_ms(least(coalesce(m.left_at, a.stop_at), a.stop_at)) - epoch_ms(greatest(m.joined_at, a.start_at)), 0
        )::DOUBLE AS present_ms
    FROM mine a
    JOIN members m
      ON m.cluster = a.cluster AND m.boot = a.boot AND m.role = 'worker'
     AND m.joined_at <= a.stop_at AND (m.left_at IS NULL OR m.left_at >= a.start_at)
),
present AS (
    SELECT
        cluster,
        boot,
        no,
        count(*) AS n_ever,
        sum(present_ms) AS present_ms,
        sum(n_threads * present_ms) / 1e3 AS thread_s,
        list(DISTINCT instance_type ORDER BY instance_type) FILTER (instance_type IS NOT NULL) AS instance_types,
        max(cores) AS cores,
        max(memory_bytes) AS memory_bytes,
        max(n_threads) AS worker_threads,
        max(memory_limit_bytes) AS memory_limit_bytes
    FROM workers
    GROUP BY cluster, boot, no
),
failed AS (
    SELECT cluster, boot, group_no AS no, sum(count) AS n
    FROM exceptions
    WHERE group_no IS NOT NULL
    GROUP BY cluster, boot, group_no
),
done AS (
    SELECT g.cluster, g.boot, g.computation AS no, sum(list_sum(map_values(g.action_us))) AS us, sum(f.n) AS n_failed
    FROM groups g
    LEFT JOIN failed f USING (cluster, boot, no)
    WHERE g.computation IS NOT NULL
    GROUP BY g.cluster, g.boot, g.computation
),
run AS (
    SELECT
        a.cluster,
        a.duration_ms,
        p.* EXCLUDE (cluster, boot, no, n_ever, present_ms),
        CASE
            WHEN a.duration_ms > 0 AND p.n_ever > 0 THEN greatest(round(p.present_ms / a.duration_ms), 1)::BIGINT
            ELSE p.n_ever
        END AS n_workers,
        capped(greatest(coalesce(d.us, 0), 0)) AS us,
        coalesce(d.n_failed, 0) AS n_failed,
        c.currency,
        CASE WHEN c.thread_us > 0 THEN c.dollars * least(greatest(coalesce(d.us, 0), 0) / c.thread_us, 1) END AS dollars
    FROM mine a
    LEFT JOIN present p USING (cluster, boot, no)
    JOIN done d USING (cluster, boot, no)
    LEFT JOIN catalog c ON c.cluster = a.cluster
)
SELECT
    instance_types,
    cores,
    memory_bytes,
    worker_threads,
    memory_limit_bytes,
    n_workers,
    count(*) AS n,
    count(DISTINCT cluster) AS n_clusters,
    median(duration_ms) AS median_ms,
    quantile_cont(duration_ms, 0.95) AS p95_ms,
    median(thread_s) AS thread_s,
    median(us) AS us,
    median(dollars) AS dollars,
    coalesce(max(currency), 'USD') AS currency,
    capped(sum(n_failed)) AS n_tasks_erred
FROM run
GROUP BY ALL
ORDER BY median_ms, instance_types, cores, memory_bytes, worker_threads, memory_limit_bytes, n_workers
LIMIT $limit OFFSET $offset
