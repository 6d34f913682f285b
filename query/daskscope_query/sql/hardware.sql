-- reads: computations, groups, exceptions, members, catalog
-- Computations of one code by the machines that they ran on, fastest first. Machines are those of the workers that were
-- there while one ran, and only computations that have ended count; `n_workers` is how many there were at any time.
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
present AS (
    SELECT
        a.cluster,
        a.boot,
        a.no,
        count(*) AS n_workers,
        sum(m.n_threads) AS n_threads,
        list(DISTINCT m.instance_type ORDER BY m.instance_type) FILTER (m.instance_type IS NOT NULL) AS instance_types,
        max(m.cores) AS cores,
        max(m.memory_bytes) AS memory_bytes,
        max(m.n_threads) AS worker_threads,
        max(m.memory_limit_bytes) AS memory_limit_bytes
    FROM mine a
    JOIN members m
      ON m.cluster = a.cluster AND m.boot = a.boot AND m.role = 'worker'
     AND m.joined_at <= a.stop_at AND (m.left_at IS NULL OR m.left_at >= a.start_at)
    GROUP BY a.cluster, a.boot, a.no
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
        p.* EXCLUDE (cluster, boot, no, n_threads),
        a.duration_ms * p.n_threads / 1e3 AS thread_s,
        capped(greatest(coalesce(d.us, 0), 0)) AS us,
        coalesce(d.n_failed, 0) AS n_failed,
        CASE WHEN c.thread_us > 0 THEN c.dollars * least(greatest(coalesce(d.us, 0), 0) / c.thread_us, 1) END AS dollars
    FROM mine a
    LEFT JOIN present p USING (cluster, boot, no)
    LEFT JOIN done d USING (cluster, boot, no)
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
    capped(sum(n_failed)) AS n_tasks_erred
FROM run
GROUP BY ALL
ORDER BY median_ms, instance_types, cores, memory_bytes, worker_threads, memory_limit_bytes, n_workers
LIMIT $limit OFFSET $offset
