#!/bin/sh
# A mirror on YARN: the driver is this process, executors are containers. No spark-submit.
# PACKAGES is made once, on a machine like the nodes, and put where they can read it: docs/operating/spark.md.
: "${HADOOP_CONF_DIR:?the folder with core-site.xml and yarn-site.xml}"
: "${PACKAGES:=hdfs:///apps/mirrorspark/packages.tar.gz}"
exec mirrorspark run "${1:-/etc/mirrorspark/mm2.properties}" \
  --master yarn \
  --conf "spark.yarn.dist.archives=$PACKAGES#packages" \
  --conf spark.executorEnv.PYTHONPATH=packages \
  --conf spark.pyspark.python=/usr/bin/python3.11 \
  --conf spark.yarn.queue=mirrors \
  --conf spark.yarn.maxAppAttempts=1 \
  --conf spark.authenticate=true \
  --conf spark.network.crypto.enabled=true
