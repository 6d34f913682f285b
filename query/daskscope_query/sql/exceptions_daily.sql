-- reads: exceptions, exceptions_before, clusters, clusters_before
-- The roll-up of one day: exceptions that no earlier day has, by user and kind.
WITH users AS (
    SELECT cluster, arg_max("user", (boot, seq)) AS "user"
    FROM (FROM clusters UNION ALL BY NAME FROM clusters_before)
    GROUP BY cluster
),
fresh AS (SELECT e.* REPLACE (coalesce(origin, 'user') AS origin) FROM exceptions e ANTI JOIN exceptions_before USING (cluster, boot, no))
SELECT
    $account AS account,
    $day::DATE AS day,
    "user",
    type,
    text,
    prefix,
    count(DISTINCT cluster) AS n_clusters,
    capped(sum(count)) AS count,
    origin,
    min(first_at) AS first_at,
    max(last_at) AS last_at,
    list(DISTINCT cluster_id ORDER BY cluster_id) AS cluster_ids,
    arg_max(cluster, (last_at, cluster)) AS newest
FROM fresh
LEFT JOIN users USING (cluster)
GROUP BY "user", type, text, prefix, origin
ORDER BY "user", type, text, prefix, origin
